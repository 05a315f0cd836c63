# op: exp
# public: exp_settings_of_the_gpu
# honest-but-unusual: settings in a dataclass, configurations pruned by the number of elements, and as many programs as the
# GPU has multiprocessors; elsewhere a fixed number.
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    waves: int
    elsewhere: int = 8


def _fitting(configs, named_args, **kwargs):
    fitting = [c for c in configs if c.kwargs["BLOCK"] < 2 * max(named_args["n"], 64)]
    return fitting or configs[:1]


CONFIGS = [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((64, 1), (256, 2), (1024, 4))]


@triton.autotune(configs=CONFIGS, key=["n"], prune_configs_by={"early_config_prune": _fitting})
@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start.to(tl.int64) + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=0).to(tl.float32)
        tl.store(o_ptr + i, tl.exp(x).to(o_ptr.dtype.element_ty), mask=i < n)


def _programs(x, settings):
    if x.is_cuda:
        return settings.waves * torch.cuda.get_device_properties(x.device).multi_processor_count
    return settings.elsewhere


def wrapper(input):
    x = input.contiguous()
    dtype = x.dtype if x.dtype.is_floating_point else torch.get_default_dtype()
    o = torch.empty(x.shape, dtype=dtype, device=x.device)
    if x.numel():
        kernel[(_programs(x, Settings(waves=2)),)](x, o, x.numel())
    return o
