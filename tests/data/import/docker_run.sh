#!/bin/bash
# Our own file: a line as it is passed around, with one of each thing that a recipe has no place for.
export HF_TOKEN=hf_abcdefghijklmnop
touch /tmp/sparkrecipes-import-was-run
sudo docker run -d --rm -it --name llm --gpus all \
  --ipc=host --network host --privileged \
  --ulimit memlock=-1 --shm-size=16g -p 8000:8000 \
  -v ~/.cache/huggingface:/root/.cache/huggingface -v "$PWD/templates:/templates" \
  -e HF_TOKEN=$HF_TOKEN -e VLLM_LOGGING_LEVEL=INFO -eNCCL_DEBUG=WARN \
  vllm/vllm-openai:v0.31.0-aarch64 \
  Qwen/Qwen3-8B-FP8 --host 0.0.0.0 --port 8000 \
  --max-model-len 65536 --max-model-len 32768 --max_num_seqs 4 \
  --gpu-memory-utilization 0.4 -tp 1 --api-key secret123 \
  --chat-template "$TEMPLATE" --enable-prefix-caching
