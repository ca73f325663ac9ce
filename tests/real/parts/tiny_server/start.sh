#!/bin/sh
# PID 1 of a container that plays an engine: it ends at once on SIGTERM, as a real one does.
# MODE says what goes wrong: here while it loads, in answer.sh when it is asked.
trap 'exit 0' TERM
echo "Starting to load model for $*"
case "$MODE" in
exits)
    i=0
    while [ $i -lt 300 ]; do echo "  File \"engine.py\", line $i, in load"; i=$((i + 1)); done
    echo "ValueError: no kernel for this GPU; HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345"
    echo "non-default args: {'key': '$VLLM_API_KEY'}"
    exit 3
    ;;
silent)
    sleep 600 &
    wait
    ;;
dies | hungry)
    # Not before the test says so: it has to set a limit or a policy first.
    while [ ! -e /go ]; do sleep 0.2; done
    [ "$MODE" = dies ] && exit 3
    exec tail /dev/zero
    ;;
esac
echo "Loading safetensors checkpoint shards: 100% Completed | 1/1"
nc -ll -p 8000 -e /answer.sh &
echo "Application startup complete."
wait
