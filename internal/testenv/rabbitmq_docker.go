package testenv

const rabbitImage = "rabbitmq:4"

// rabbitContainer is a broker in Docker, controlled by the tools inside.
type rabbitContainer struct{ *container }

func dockerRabbit(set rabbitSettings) (*runningRabbit, error) {
	c, addr, err := startContainer(containerSpec{
		Image: rabbitImage, Port: "5672/tcp", Ready: "Server startup complete",
		Files: map[string]string{"/etc/rabbitmq/conf.d/90-test.conf": set.text(), "/etc/rabbitmq/advanced.config": set.advancedText()},
	})
	if err != nil {
		return nil, err
	}
	return &runningRabbit{url: "amqp://guest:guest@" + addr + "/", control: rabbitContainer{c}, stop: c.stop}, nil
}

func (c rabbitContainer) eval(expr string) (string, error) { return c.ctl("eval", expr) }

func (c rabbitContainer) ctl(args ...string) (string, error) {
	return c.ask(append([]string{"rabbitmqctl", "-q"}, args...))
}
