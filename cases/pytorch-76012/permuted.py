"""Layer norm over channels as frameworks offer it: permute, normalise, permute back, copy."""
import torch.nn.functional as F

from channels import EPSILON, run


def norm(x, weight, bias):
    y = x.permute(0, 2, 3, 1)
    y = F.layer_norm(y, (x.shape[1],), weight, bias, EPSILON)
    return y.permute(0, 3, 1, 2).contiguous()


if __name__ == "__main__":
    run(norm)
