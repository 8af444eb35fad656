# SPDX-License-Identifier: BSD-3-Clause
"""What the module knows of the C headers: declarations, numbers and layouts, here and nowhere else.

tests/python/declarations.py writes a C program of static assertions from these tables, so that the headers and this file
cannot drift apart."""
import ctypes
import re

# FAMILY | declaration. NAME, TYPE and BITS stand for what the family says, {a,b} for one declaration with each, and words in
# capitals for parameters (_TERMS).
_FUNCTIONS = """
- | int gpushmem_init_attr_sized(const struct gpushmem_init_attr *attr, size_t size)
- | int gpushmem_get_uniqueid(gpushmem_uniqueid_t *id)
- | int gpushmem_finalize(void)
- | int gpushmem_initialized(void)
- | int gpushmem_query_thread(int *provided)
- | void gpushmem_global_exit(int status)
- | int gpushmem_my_pe(void)
- | int gpushmem_n_pes(void)
- | int gpushmem_node_my_pe(void)
- | int gpushmem_node_n_pes(void)
- | const char *gpushmem_version_string(void)
- | const char *gpushmem_strerror(int code)
- | const char *gpushmem_last_error(void)
- | int gpushmem_last_error_code(void)
- | void gpushmem_clear_error(void)
- | void *gpushmem_align(size_t alignment, size_t bytes)
- | void *gpushmem_malloc(size_t bytes)
- | int gpushmem_free(void *address)
- | void *gpushmem_ptr(const void *sym, int pe)
- | int gpushmem_pe_accessible(int pe)
- | int gpushmem_heap_info_sized(struct gpushmem_heap_info *info, size_t size)
- | int gpushmem_buffer_register(void *address, size_t bytes)
- | int gpushmem_buffer_unregister(void *address)
- | void *gpushmem_buffer_register_symmetric(void *buffer, size_t bytes)
- | int gpushmem_buffer_unregister_symmetric(void *address)
- | int gpushmem_ctx_create(long options, gpushmem_ctx_t *ctx)
- | int gpushmem_team_create_ctx(gpushmem_team_t team, long options, gpushmem_ctx_t *ctx)
- | int gpushmem_ctx_destroy(CTX)
- | int gpushmem_ctx_fence(CTX)
- | int gpushmem_ctx_quiet(CTX)
- | int gpushmem_set_wait_hook(int (*hook)(void *argument), void *argument)
- | int gpushmem_sync_all(void)
- | int gpushmem_barrier_all(void)
- | int gpushmem_set_lock(long *lock)
- | int gpushmem_test_lock(long *lock)
- | int gpushmem_clear_lock(long *lock)
- | int gpushmem_ctx_signal_op(CTX, SIGNAL, int pe)
- | int gpushmem_signal_fetch_status(const uint64_t *sig, uint64_t *value)
- | int gpushmem_signal_wait_until_status(const uint64_t *sig, enum gpushmem_cmp cmp, uint64_t value, uint64_t *seen)
BITS | int gpushmem_ctx_{put,get}BITS(CTX, MEM_COPY, int pe)
BITS | int gpushmem_ctx_{put,get}BITS_nbi(CTX, MEM_COPY, int pe)
BITS | int gpushmem_ctx_{iput,iget}BITS(CTX, FROM_TO, STRIDES, size_t nelems, int pe)
BITS | int gpushmem_ctx_{ibput,ibget}BITS(CTX, FROM_TO, STRIDES, size_t bsize, size_t nblocks, int pe)
BITS | int gpushmem_ctx_putBITS_signal(CTX, MEM_COPY, SIGNAL, int pe)
BITS | int gpushmem_ctx_putBITS_signal_nbi(CTX, MEM_COPY, SIGNAL, int pe)
BITS | int gpushmem_{put,get}BITS_on_stream(MEM_COPY, int pe, STREAM)
BITS | int gpushmem_putBITS_signal_on_stream(MEM_COPY, SIGNAL, int pe, STREAM)
EXTENDED | int gpushmem_ctx_NAME_atomic_fetch_status(CTX, const TYPE *source, int pe, TYPE *before)
EXTENDED | int gpushmem_ctx_NAME_atomic_set(CTX, TYPE *dest, TYPE value, int pe)
EXTENDED | int gpushmem_ctx_NAME_atomic_swap_status(CTX, TYPE *dest, TYPE value, int pe, TYPE *before)
AMO | int gpushmem_ctx_NAME_atomic_compare_swap_status(CTX, TYPE *dest, TYPE cond, TYPE value, int pe, TYPE *before)
AMO | int gpushmem_ctx_NAME_atomic_fetch_inc_status(CTX, TYPE *dest, int pe, TYPE *before)
AMO | int gpushmem_ctx_NAME_atomic_inc(CTX, TYPE *dest, int pe)
AMO | int gpushmem_ctx_NAME_atomic_fetch_{add,and,or,xor}_status(CTX, TYPE *dest, TYPE value, int pe, TYPE *before)
AMO | int gpushmem_ctx_NAME_atomic_{add,and,or,xor}(CTX, TYPE *dest, TYPE value, int pe)
WORDS | int gpushmem_NAME_{wait_until,test}(const volatile TYPE *var, enum gpushmem_cmp cmp, TYPE value)
WORDS | int gpushmem_NAME_{wait_until,test}_all(const volatile TYPE *vars, size_t nelems, WAIT)
WORDS | int gpushmem_NAME_{wait_until,test}_any_status(const volatile TYPE *vars, size_t nelems, WAIT, size_t *index)
WORDS | int gpushmem_NAME_{wait_until,test}_some_status(const volatile TYPE *vars, size_t n, size_t *indices, WAIT, size_t *count)
- | int gpushmem_team_my_pe(gpushmem_team_t team)
- | int gpushmem_team_n_pes(gpushmem_team_t team)
- | int gpushmem_team_translate_pe(gpushmem_team_t src_team, int src_pe, gpushmem_team_t dest_team)
- | int gpushmem_team_split_strided(gpushmem_team_t parent, int start, int stride, int size, CONFIG, gpushmem_team_t *new_team)
- | int gpushmem_team_split_2d(gpushmem_team_t parent, int x, XCONFIG, gpushmem_team_t *xteam, YCONFIG, gpushmem_team_t *yteam)
- | int gpushmem_team_split_list(gpushmem_team_t parent, const int *ranks, int size, CONFIG, gpushmem_team_t *new_team)
- | int gpushmem_team_survivors(gpushmem_team_t parent, CONFIG, gpushmem_team_t *new_team)
- | int gpushmem_team_destroy(gpushmem_team_t team)
- | int gpushmem_team_sync(gpushmem_team_t team)
- | int gpushmem_connect(gpushmem_team_t team)
- | int gpushmem_failed_pes(int *pes, int most)
- | void *gpushmem_team_ptr(gpushmem_team_t team, const void *sym, int pe)
- | int gpushmem_barrier(gpushmem_team_t team)
- | int gpushmem_broadcastmem(TEAM_COPY, int root)
- | int gpushmem_{collect,fcollect,alltoall}mem(TEAM_COPY)
- | int gpushmem_broadcastmem_on_stream(TEAM_COPY, int root, STREAM)
- | int gpushmem_{collect,fcollect,alltoall}mem_on_stream(TEAM_COPY, STREAM)
SUMS | int gpushmem_NAME_{sum,prod}_{reduce,reducescatter}(FOLD)
ORDERED | int gpushmem_NAME_{min,max}_{reduce,reducescatter}(FOLD)
INTEGERS | int gpushmem_NAME_{and,or,xor}_{reduce,reducescatter}(FOLD)
SUMS | int gpushmem_NAME_sum_{inscan,exscan}(FOLD)
SUMS | int gpushmem_NAME_{sum,prod}_{reduce,reducescatter}_on_stream(FOLD, STREAM)
ORDERED | int gpushmem_NAME_{min,max}_{reduce,reducescatter}_on_stream(FOLD, STREAM)
INTEGERS | int gpushmem_NAME_{and,or,xor}_{reduce,reducescatter}_on_stream(FOLD, STREAM)
SUMS | int gpushmem_NAME_sum_{inscan,exscan}_on_stream(FOLD, STREAM)
- | int gpushmem_signal_op_on_stream(SIGNAL, int pe, STREAM)
- | int gpushmem_signal_wait_until_on_stream(uint64_t *sig, enum gpushmem_cmp cmp, uint64_t value, STREAM)
- | int gpushmem_quiet_on_stream(STREAM)
- | int gpushmem_barrier_all_on_stream(STREAM)
- | int gpushmem_sync_all_on_stream(STREAM)
- | int gpushmem_team_sync_on_stream(gpushmem_team_t team, STREAM)
- | int gpushmem_barrier_on_stream(gpushmem_team_t team, STREAM)
"""

_AMO = {"int32": "int32_t", "int64": "int64_t", "uint32": "uint32_t", "uint64": "uint64_t"}
_INTEGERS = {"int8": "int8_t", "int16": "int16_t", "uint8": "uint8_t", "uint16": "uint16_t", **_AMO}
_ORDERED = {"bfloat16": "gpushmem_bfloat16", "half": "gpushmem_half", "float": "float", "double": "double", **_INTEGERS}
FAMILIES = {
    "-": {"": ""},
    "AMO": _AMO,
    "EXTENDED": {"float": "float", "double": "double", **_AMO},
    "WORDS": {"short": "short", "ushort": "unsigned short", **_AMO},
    "INTEGERS": _INTEGERS,
    "ORDERED": _ORDERED,
    "SUMS": {**_ORDERED, "complexf": "gpushmem_complexf", "complexd": "gpushmem_complexd"},
}
SIZES = (8, 16, 32, 64, 128)


_TERMS = {
    "MEM_COPY": "void *dest, const void *source, size_t nelems",
    "FOLD": "gpushmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems",
    "TEAM_COPY": "gpushmem_team_t team, void *dest, const void *source, size_t bytes",
    "SIGNAL": "uint64_t *sig, uint64_t signal, enum gpushmem_signal_op sig_op",
    "CTX": "gpushmem_ctx_t ctx",
    "STREAM": "gpushmem_stream_t stream",
    "STRIDES": "ptrdiff_t dst, ptrdiff_t sst",
    "CONFIG": "const struct gpushmem_team_config *config, long config_mask",
    "XCONFIG": "const struct gpushmem_team_config *xconfig, long xmask",
    "YCONFIG": "const struct gpushmem_team_config *yconfig, long ymask",
    "WAIT": "const int *status, enum gpushmem_cmp cmp, TYPE value",
    "FROM_TO": "void *dest, const void *source",
}


def _expanded(family, text):
    choice = re.search(r"\{([\w,]+)\}", text)
    if choice:
        each = [text[:choice.start()] + word + text[choice.end():] for word in choice[1].split(",")]
        return [one for form in each for one in _expanded(family, form)]
    for term, meaning in _TERMS.items():
        text = re.sub(r"\b%s\b" % term, meaning, text)
    if family == "BITS":
        return [text.replace("BITS", str(bits)) for bits in SIZES]
    return [text.replace("NAME", name).replace("TYPE", kind) for name, kind in FAMILIES[family].items()]


def _prototypes():
    for line in filter(None, _FUNCTIONS.splitlines()):
        family, text = line.split(" | ")
        for one in _expanded(family, text):
            yield one[:one.index("(")].split("gpushmem_", 1)[1], one


# Declarations by the functions' names without the prefix.
PROTOTYPES = dict(_prototypes())

_PLAIN = {
    "int": ctypes.c_int, "long": ctypes.c_long, "size_t": ctypes.c_size_t, "ptrdiff_t": ctypes.c_ssize_t,
    "short": ctypes.c_int16, "unsigned short": ctypes.c_uint16, "float": ctypes.c_float, "double": ctypes.c_double,
    "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
    "gpushmem_ctx_t": ctypes.c_void_p, "gpushmem_stream_t": ctypes.c_void_p, "gpushmem_team_t": ctypes.c_int32,
}


def _plain(kind):
    """The ctypes type of a C type, which may be followed by a parameter's name."""
    if "*" in kind:
        return ctypes.c_void_p
    if kind.startswith("enum "):
        return ctypes.c_int
    return _PLAIN.get(kind) or _PLAIN[kind.rpartition(" ")[0]]


def signature(name):
    """Result and arguments of gpushmem_NAME as ctypes types."""
    result, rest = PROTOTYPES[name].split("gpushmem_" + name + "(")
    parameters = re.sub(r"\(\*\w+\)\(.*?\)", "*", rest[:-1]) # a function is a pointer
    arguments = [] if parameters == "void" else [_plain(one.strip()) for one in parameters.split(",")]
    if result.strip() == "const char *":
        return ctypes.c_char_p, arguments
    return None if result.strip() == "void" else _plain(result.strip()), arguments


CONSTANTS = {
    "GPUSHMEM_TEAM_INVALID": -1, "GPUSHMEM_TEAM_WORLD": 0, "GPUSHMEM_TEAM_SHARED": 1, "GPUSHMEM_TEAM_NODE": 2,
    "GPUSHMEM_TEAM_SAME_RANK": 3,
    "GPUSHMEM_TEAM_SAME_GPU": 4,
    "GPUSHMEM_TEAM_GPU_LEADERS": 5,
    "GPUSHMEM_THREAD_SINGLE": 0, "GPUSHMEM_THREAD_FUNNELED": 1, "GPUSHMEM_THREAD_SERIALIZED": 2, "GPUSHMEM_THREAD_MULTIPLE": 3,
    "GPUSHMEM_CMP_EQ": 0, "GPUSHMEM_CMP_NE": 1, "GPUSHMEM_CMP_GT": 2, "GPUSHMEM_CMP_LE": 3, "GPUSHMEM_CMP_LT": 4,
    "GPUSHMEM_CMP_GE": 5,
    "GPUSHMEM_SIGNAL_SET": 9, "GPUSHMEM_SIGNAL_ADD": 10,
    "GPUSHMEM_CTX_SHARED": 0, "GPUSHMEM_CTX_SERIALIZED": 1, "GPUSHMEM_CTX_PRIVATE": 2, "GPUSHMEM_CTX_NOSTORE": 4,
    "(long)GPUSHMEM_CTX_DEFAULT": 1,
    "GPUSHMEM_ERR_INVALID": -1, "GPUSHMEM_ERR_STATE": -2, "GPUSHMEM_ERR_PE": -3, "GPUSHMEM_ERR_ADDRESS": -4,
    "GPUSHMEM_ERR_ALIGNMENT": -5, "GPUSHMEM_ERR_NO_MEMORY": -6, "GPUSHMEM_ERR_SETTING": -7, "GPUSHMEM_ERR_BOOTSTRAP": -8,
    "GPUSHMEM_ERR_PEER_DATA": -9, "GPUSHMEM_ERR_TRANSPORT": -10, "GPUSHMEM_ERR_UNREACHABLE": -11,
    "GPUSHMEM_ERR_PE_FAILED": -12, "GPUSHMEM_ERR_TIMEOUT": -13, "GPUSHMEM_ERR_RING": -14, "GPUSHMEM_ERR_ASYMMETRY": -15,
    "GPUSHMEM_ERR_UNSUPPORTED": -16, "GPUSHMEM_ERR_SYSTEM": -17, "GPUSHMEM_ERR_CUDA": -18,
}


class UniqueId(ctypes.Structure):
    C_NAME = "struct gpushmem_uniqueid"
    _fields_ = [("bytes", ctypes.c_ubyte * 128)]


class InitAttr(ctypes.Structure):
    C_NAME = "struct gpushmem_init_attr"
    _fields_ = [("uniqueid", ctypes.c_void_p), ("rank", ctypes.c_int), ("n_pes", ctypes.c_int),
                ("functions", ctypes.c_void_p), ("thread_level", ctypes.c_int), ("tells_failures", ctypes.c_int)]


class HeapInfo(ctypes.Structure):
    C_NAME = "struct gpushmem_heap_info"
    _fields_ = [("bytes", ctypes.c_size_t), ("used_bytes", ctypes.c_size_t), ("largest_free_bytes", ctypes.c_size_t),
                ("allocations", ctypes.c_size_t), ("kind", ctypes.c_char_p), ("pages", ctypes.c_char_p)]


STRUCTS = (UniqueId, InitAttr, HeapInfo)
