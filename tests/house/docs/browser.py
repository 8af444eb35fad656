# SPDX-License-Identifier: BSD-3-Clause
"""A headless Chromium, spoken to over a pair of pipes (its DevTools protocol), so that no package is needed but the browser."""
import base64
import json
import os
import shutil
import subprocess
import tempfile

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SECONDS = 120  # against hangs only


class Browser:
    """One tab. What it says of errors, and what it fetches, is kept until somebody takes it."""

    def __init__(self):
        self.number, self.complaints, self.requests, self.rest, self.events = 0, [], [], b"", []
        self.home = tempfile.TemporaryDirectory(prefix="browser.")
        their_in, self.out = os.pipe()
        self.into, their_out = os.pipe()

        def place():  # the browser reads from 3 and writes to 4; the copies keep what lies there from being lost
            high_in, high_out = os.dup(their_in), os.dup(their_out)
            spare_in, spare_out = os.dup(high_in), os.dup(high_out)
            os.dup2(spare_in, 3)
            os.dup2(spare_out, 4)
        self.process = subprocess.Popen(
            [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
             "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe", "--user-data-dir=" + self.home.name,
             "about:blank"],
            close_fds=False, preexec_fn=place, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.home.name})
        os.close(their_in)
        os.close(their_out)
        self.session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        self.home.cleanup()

    def message(self):
        while b"\0" not in self.rest:
            piece = os.read(self.into, 1 << 20)
            if not piece:
                raise EOFError("the browser has ended")
            self.rest += piece
        text, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(text)
        self.note(message.get("method"), message.get("params", {}))
        return message

    def note(self, method, params):
        if method == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"].get("text", "an exception"))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append("console: %s" % [a.get("value") for a in params["args"]])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append("%s %s" % (params["entry"]["text"], params["entry"].get("url", "")))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self.events.append(method)

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]["message"]))
                return answer["result"]

    def open(self, url):
        self.events.clear()
        result = self.ask("Page.navigate", url=url)
        if result.get("errorText"):
            raise RuntimeError("%s: %s" % (url, result["errorText"]))
        while "loaderId" in result and not self.events:
            self.message()

    def size(self, width, height=1000):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, on):
        scheme = "dark" if on else "light"
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def run(self, script):
        """The value of an expression in the page."""
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError("%s: %s" % (script[:60], result["exceptionDetails"]))
        return result["result"].get("value")

    def until(self, condition):
        """Waits in the page; what never comes true is a failure of the caller's next look."""
        self.run("""new Promise((resolve) => {
            const end = Date.now() + %d, look = () => { (%s) || Date.now() > end ? resolve() : setTimeout(look, 10); };
            look();
        })""" % (SECONDS * 100, condition))

    def type(self, selector, text):
        self.run("document.querySelector(%s).focus()" % json.dumps(selector))
        self.ask("Input.insertText", text=text)

    def shoot(self, path, whole=False):
        data = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def take_complaints(self):
        taken, self.complaints = self.complaints, []
        return taken
