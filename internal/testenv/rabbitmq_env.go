package testenv

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// env is the environment of the broker and of its tools: nothing of the machine's own broker.
func (r *localRabbit) env() []string {
	env := slices.DeleteFunc(os.Environ(), ofAnotherBroker)
	return append(env,
		"LC_ALL=C.UTF-8",
		"HOME="+r.dir, // the cookie is there
		"RABBITMQ_NODENAME="+r.node,
		"RABBITMQ_DIST_PORT="+strconv.Itoa(r.dist),
		"RABBITMQ_CONF_ENV_FILE="+r.file("rabbitmq-env.conf"),
		"RABBITMQ_CONFIG_FILE="+r.file("rabbitmq.conf"),
		"RABBITMQ_CONFIG_FILES="+r.file("conf.d/*.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE="+r.file("advanced.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+r.file("plugins"),
		"RABBITMQ_MNESIA_BASE="+r.file("data"),
		"RABBITMQ_LOG_BASE="+r.file("log"),
		"RABBITMQ_PID_FILE="+r.file("pid"),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+noSpinning+" -kernel inet_dist_use_interface {127,0,0,1}",
		"RABBITMQ_CTL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"ERL_CRASH_DUMP_SECONDS=0", // the log says enough
		"ERL_EPMD_ADDRESS="+localhost,
		"ERL_EPMD_PORT="+strconv.Itoa(r.epmd.port),
		"ERL_FLAGS=-start_epmd false",
		"RUNNING_UNDER_SYSTEMD=1", // then the script becomes the broker, and signals meant for one reach the other
	)
}

// noSpinning has idle schedulers of a broker leave the processors, which it shares with the tests
// and other brokers, to them at once.
const noSpinning = "+sbwt none +sbwtdcpu none +sbwtdio none"

func ofAnotherBroker(variable string) bool {
	for _, prefix := range []string{"RABBITMQ_", "ERL_", "NOTIFY_SOCKET="} {
		if strings.HasPrefix(variable, prefix) {
			return true
		}
	}
	return false
}
