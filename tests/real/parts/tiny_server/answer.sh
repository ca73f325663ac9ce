#!/bin/sh
# One HTTP request on stdin, one answer on stdout: what an OpenAI-compatible engine would say.
read -r method path _
length=0
cr=$(printf '\r')
while read -r header value; do
    value=${value%"$cr"}
    [ "$header" = "$cr" ] && break
    [ "$header" = "Content-Length:" ] || [ "$header" = "content-length:" ] && length=$value
done
sent=''
[ "$length" -gt 0 ] && sent=$(head -c "$length")
case "$sent" in
*'"stream": true'* | *'"stream":true'*)
    # Some words, one a hundredth of a second, then what was used, as engines stream it.
    printf 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n'
    for word in the quick brown fox jumps over a lazy dog and sleeps in warm grass until it is noon again; do
        printf 'data: {"choices":[{"index":0,"delta":{"content":" %s"}}]}\n\n' $word
        sleep 0.01
    done
    printf 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}\n\n'
    printf 'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":20}}\n\n'
    printf 'data: [DONE]\n\n'
    exit
    ;;
esac
case "$path" in
/health) body='' ;;
/v1/models) body='{"object":"list","data":[{"id":"'${MODEL:-tiny}'","object":"model"}]}' ;;
*) body='{"choices":[{"index":0,"message":{"role":"assistant","content":"one two three"}}]}' ;;
esac
status='200 OK'
case "$MODE $method" in
'wedged POST') sleep 600 ;;
'noise POST') body='{"choices":[{"message":{"content":"!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!"}}]}' ;;
'base POST')
    status='400 Bad Request'
    body='{"error":{"message":"you must provide a chat template if the tokenizer does not define one"}}'
    ;;
'locked GET') [ "$path" = /health ] || status='401 Unauthorized' ;;
esac
printf 'HTTP/1.1 %s\r\n' "$status"
printf 'Content-Type: application/json\r\nContent-Length: %s\r\n' "${#body}"
printf 'Connection: close\r\n\r\n%s' "$body"
