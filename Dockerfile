# All systems in one image, on the CPU:
#   docker build -t reference-agents .
#   docker run -v "$PWD/logs:/home/agent/logs" reference-agents \
#       planet-train --logdir logs/cartpole --config cpu
# On a GPU: build with --build-arg EXTRAS=all,gpu, run with --gpus all.
FROM python:3.11-slim-bookworm

ARG EXTRAS=all
ENV VENV=/opt/venv \
    PATH=/opt/venv/bin:$PATH \
    PIP_NO_CACHE_DIR=1 \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics

WORKDIR /opt/reference-agents
COPY setup.py pyproject.toml README.md LICENSE NOTICE ./
COPY agents agents
COPY baselines_her baselines_her
COPY planet planet
COPY scripts scripts
# Installs the drivers of EGL with apt-get, too.
RUN EXTRAS="$EXTRAS" ./scripts/setup.sh && rm -rf /var/lib/apt/lists/*

RUN useradd --create-home agent && \
    install -d -o agent /home/agent/logs
USER agent
WORKDIR /home/agent
CMD ["planet-train", "--help"]
