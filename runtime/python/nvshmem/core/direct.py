# SPDX-License-Identifier: BSD-3-Clause
"""Questions, by the name that programs ask them by: nvshmem.core.direct.init_status."""
from . import Teams, init_status, my_pe, n_pes, team_my_pe, team_n_pes

__all__ = ["Teams", "init_status", "my_pe", "n_pes", "team_my_pe", "team_n_pes"]
