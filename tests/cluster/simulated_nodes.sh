#!/usr/bin/env bash
# Makes simulated nodes, says "ready", and keeps them until its standard input ends.
#
#   simulated_nodes.sh FOLDER RATE NODE=GROUP...
#
# It runs as the first process of new network, mount and process namespaces (simulated_nodes.py
# starts it), so all that is in the nodes ends with it. It is the head, with the address 10.77.0.254.
# Each node has namespaces of its own and one interface, eth0; the nodes of a group are on one
# bridge, and each bridge has an up-link to that of the head. FOLDER/NODE.pid is the first process of
# a node; FOLDER/remote takes a host and a command, as ssh does, and
# fails as ssh does on a node that is not reached.
set -euo pipefail
folder=$1 rate=$2
shift 2

# limit DEVICE RATE: with a larger burst, short messages pass a slow interface at full speed.
limit() { echo "qdisc replace dev $1 root tbf rate $2 burst 16kb latency 60ms"; }

# inside NODE COMMAND...
inside() {
    local pid
    pid=$(<"$folder/$1.pid")
    shift
    nsenter -t "$pid" -n -- "$@"
}

# No address comes of itself.
no_ipv6() {
    local each
    for each in all default; do
        each=/proc/sys/net/ipv6/conf/$each/disable_ipv6
        [ ! -e "$each" ] || echo 1 >"$each"
    done
}

# be_node NAME: the first process of a node.
be_node() {
    no_ipv6
    hostname "$1"
    mount -t tmpfs -o size=512m tmpfs /dev/shm
    ip link set lo up
    touch "$folder/$1.up"
    sleep infinity &
    wait
}

start_nodes() {
    local number=0 node
    { echo "127.0.0.1 localhost"; echo "10.77.0.254 head"; } >"$folder/hosts"
    for node in "$@"; do
        echo "10.77.0.$((++number)) ${node%=*}" >>"$folder/hosts"
    done
    mount --bind "$folder/hosts" /etc/hosts
    for node in "$@"; do
        unshare --net --uts --ipc --mount --pid --fork --kill-child --mount-proc \
            "$BASH" "$0" "$folder" "$rate" --node "${node%=*}" </dev/null >/dev/null &
        echo $! >"$folder/${node%=*}.parent"
    done
    for node in "$@"; do
        node=$folder/${node%=*}
        until [ -e "$node.up" ]; do sleep 0.005; done
        number=$(<"$node.parent")
        read -r number _ <"/proc/$number/task/$number/children" || true # it ends with no newline
        echo "$number" >"$node.pid"
    done
}

add_bridge() {
    echo "link add $1 type bridge"
    echo "link set $1 up"
}

connect() {
    local number=0 node name group groups=" "
    ip -batch - < <(
        add_bridge core
        echo "addr add 10.77.0.254/24 dev core"
        echo "link set lo up"
        for node in "$@"; do
            number=$((number + 1)) name=${node%=*} group=g-${node#*=}
            if [[ $groups != *" $group "* ]]; then
                groups+="$group "
                add_bridge "$group"
                echo "link add $group-up type veth peer name $group-down"
                echo "link set $group-up master $group up"
                echo "link set $group-down master core up"
            fi
            echo "link add v-$name type veth peer name eth0 netns $(<"$folder/$name.pid")"
            echo "link set v-$name master $group up"
        done
    )
    tc -batch - < <(for node in "$@"; do limit "v-${node%=*}" "$rate"; done)
    number=0
    for node in "$@"; do
        number=$((number + 1))
        inside "${node%=*}" ip -batch - <<IP
addr add 10.77.0.$number/24 dev eth0
link set eth0 up
IP
        inside "${node%=*}" tc -batch - < <(limit eth0 "$rate")
    done
}

write_remote() {
    cat >"$folder/remote" <<REMOTE
#!/bin/bash
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1
shift
case \$host in
    10.77.0.254 | head) exec /bin/sh -c "\$*" ;;
    10.77.0.*) host=\$(sed -n "s/^\$host //p" "$folder/hosts") ;;
esac
said=\$(LC_ALL=C timeout 5 bash -c "exec 3<>/dev/tcp/\$host/22" 2>&1)
case \$said in
    *refused*) ;;
    *) echo "ssh: connect to host \$host port 22: No route to host" >&2; exit 255 ;;
esac
exec nsenter -t "\$(<"$folder/\$host.pid")" -n -u -i -m -p -- /bin/sh -c "\$*"
REMOTE
    chmod +x "$folder/remote"
}

if [ "$1" = --node ]; then
    be_node "$2"
fi
no_ipv6
hostname head
# Its processes do not see those of the host, and would take their shared memory for abandoned.
mount -t tmpfs -o size=512m tmpfs /dev/shm
start_nodes "$@"
connect "$@"
write_remote
echo ready
read -r _ || true
