"""The training of train_numpy.py in PyTorch: DistributedDataParallel averages the gradients. On GPUs with NCCL, else on CPUs with Gloo."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
rank, size = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
torch.manual_seed(1)
wanted = torch.randn(8, 1)
inputs = torch.randn(4096, 8)[rank::size].to(device)
outputs = inputs @ wanted.to(device)
model = DistributedDataParallel(torch.nn.Linear(8, 1, bias=False).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(200):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(inputs), outputs).backward()
    optimizer.step()
off = (model.module.weight.detach().cpu().T - wanted).abs().max().item()
print(f"rank {rank} of {size} on {os.uname().nodename}: off by {off:.1e}", flush=True)
dist.destroy_process_group()
