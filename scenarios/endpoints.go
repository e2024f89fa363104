package scenarios

// This file makes what sends: peers at the other end of a link, and tasks of the machine
// itself with the interfaces that they send to.

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/model/link"
	"napisim/model/tcp"
	"napisim/model/traffic"
	"napisim/model/unit"
	"napisim/nic/driver"
	"napisim/nic/driver/virtual"
	"napisim/scenarios/spec"
	"napisim/sim"
	"napisim/softirq/gro"
)

// receiverConfig describes the socket that reads one connection.
func (sys *System) receiverConfig(flow model.FlowID, t spec.Traffic, app spec.App) (tcp.ReceiverConfig, error) {
	s := &sys.scenario.Sysctl
	cfg := tcp.DefaultReceiverConfig()
	cfg.Flow, cfg.IPv6 = flow, t.IPv6
	cfg.MSS = int(t.MSS)
	for i, b := range s.TCPRmem {
		cfg.Rmem[i] = int(b)
	}
	cfg.RmemMax = int(s.RmemMax)
	cfg.RcvBuf = int(app.Rcvbuf)
	cfg.ModerateRcvbuf = s.TCPModerateRcvbuf != 0
	cfg.AdvWinScale = s.TCPAdvWinScale
	cfg.CompSACKs = s.TCPCompSACKNr
	cfg.CompSACKDelay = sim.Time(s.TCPCompSACKDelayNs)
	cfg.DeferBacklogAcks = s.TCPBacklogAckDefer != 0
	n := sys.scenario.NICs[t.NIC]
	cfg.InitialRTT = 2 * sim.Time(n.Link.Delay)
	for _, b := range tcp.Behaviours() {
		if err := cfg.Choose(b, sys.scenario.Kernel.Behaviours[b]); err != nil {
			return cfg, err
		}
	}
	return cfg, errors.Join(cfg.Validate()...)
}

// senderConfig describes the peer of one connection.
func (sys *System) senderConfig(flow model.FlowID, t spec.Traffic, rcv tcp.ReceiverConfig) tcp.SenderConfig {
	cfg := tcp.DefaultSenderConfig()
	cfg.Flow, cfg.IPv6 = flow, t.IPv6
	cfg.MSS = int(t.MSS)
	cfg.TSO = int(t.TSO)
	cfg.InitCwnd = t.InitCwnd
	cfg.Congestion = string(t.Congestion)
	cfg.InitialRTT = rcv.InitialRTT
	cfg.RACK = true
	return cfg
}

// uplink is the way of the senders at one end of a link onto it. It tells them when
// a frame has left their host, which TCP small queues need, as if the link carried
// their frames only: they share it as the interface of one sending host.
type uplink struct {
	pipe *link.Pipe
	rate int64
	free sim.Time // when the last bit offered has left
}

// Offer implements tcp.Wire.
func (u *uplink) Offer(f model.Frame, at sim.Time) sim.Time {
	bits := 8 * model.WireBytes(f.Len)
	u.free = max(u.free, at) + sim.Time(bits*int64(sim.Second/1000)/u.rate*1000)
	u.pipe.Offer(f, at)
	return u.free
}

// firstVirtualID is the NAPI id of the first interface without hardware.
const firstVirtualID = 9000

func (sys *System) driverHost() driver.Host {
	return driver.Host{Machine: sys.machine, Softnets: sys.softnets, SKBs: sys.env.SKBs, Losses: sys.env.Losses, Heads: sys.env.Heads}
}

// virtualGRO is GRO of an interface without hardware, nil where it is off.
func (sys *System) virtualGRO(on bool) (*gro.Config, error) {
	if !on {
		return nil, nil
	}
	return sys.groConfig(spec.NIC{})
}

// buildVirtual makes the interfaces without hardware.
func (sys *System) buildVirtual() error {
	s := sys.scenario
	sys.taps, sys.veths = map[string]*virtual.Tun{}, map[string]*virtual.Veth{}
	id := firstVirtualID
	for _, name := range slices.Sorted(maps.Keys(s.Taps)) {
		t := s.Taps[name]
		steer, faults := sys.steering(t.Queues.RX0)
		merge, err := sys.virtualGRO(t.GRO)
		faults = append(faults, err)
		cfg := virtual.TunConfig{
			Name: name, ID: id, Write: s.Kernel.Behaviours[spec.TunWrite],
			NAPI: t.NAPI, NAPIFrags: t.NAPIFrags, GRO: merge, RXFrames: t.RXFrames, RPS: steer,
		}
		if err := errors.Join(slices.Concat(faults, cfg.Validate())...); err != nil {
			return fmt.Errorf("taps.%s: %w", name, err)
		}
		sys.taps[name] = virtual.NewTun(cfg, sys.driverHost())
		id++
	}
	for _, name := range slices.Sorted(maps.Keys(s.Veths)) {
		v := s.Veths[name]
		steer, faults := sys.steering(v.Queues.RX0)
		merge, err := sys.virtualGRO(v.GRO)
		if err := errors.Join(append(faults, err)...); err != nil {
			return fmt.Errorf("veths.%s: %w", name, err)
		}
		cfg := virtual.VethConfig{Name: name, ID: id, GRO: merge, SenderTSO: v.SenderTSO, RPS: steer}
		sys.veths[name] = virtual.NewVeth(cfg, sys.driverHost())
		id++
	}
	return nil
}

// buildSenders makes the tasks that send, after the sockets that they send to.
func (sys *System) buildSenders() error {
	phase := phaseFeeds
	for _, name := range slices.Sorted(maps.Keys(sys.scenario.Apps)) {
		app := sys.scenario.Apps[name]
		var body func(*host.Feed) func(*cpu.Task)
		switch app.Kind {
		case spec.AppTunWriter:
			body = func(f *host.Feed) func(*cpu.Task) { return host.Writer(f, sys.taps[app.Device].Write) }
		case spec.AppVhost:
			body = func(f *host.Feed) func(*cpu.Task) { return host.Vhost(f, sys.taps[app.Device].Write) }
		case spec.AppUDPSender:
			body = func(f *host.Feed) func(*cpu.Task) { return host.Sender(f, sys.veths[app.Device].Xmit) }
		default:
			continue
		}
		src, err := sys.generator("app/"+name, app.Arrivals, traffic.Config{Sizes: frameSize(app.Size), Flows: app.Flows})
		if err != nil {
			return fmt.Errorf("apps.%s: %w", name, err)
		}
		sys.bind(app.To, app.Flows)
		sys.start(app, name, body(host.NewFeed(sys.eng, phase, src)))
		phase = min(phase+1, phasePeers-1)
	}
	return nil
}

// buildQdisc lets traffic into a veth pair.
func (sys *System) buildQdisc(name string, t spec.Traffic, d *virtual.Veth) error {
	id := sys.scenario.Veths[t.NIC].CPU
	if sys.qdiscs[id] == nil {
		if sys.qdiscs == nil {
			sys.qdiscs = map[int]*virtual.Qdiscs{}
		}
		sys.qdiscs[id] = virtual.NewQdiscs(sys.eng, phasePeers, sys.softnets[id])
	}
	src, err := sys.datagrams(name, t)
	if err != nil {
		return err
	}
	sys.bind(t.To, t.Flows)
	sys.qdiscs[id].Add(src, d.Release)
	return nil
}

// generator returns a source of UDP frames for the next flows; bind goes on to those
// behind them.
func (sys *System) generator(name string, a spec.Arrivals, cfg traffic.Config) (*traffic.Generator, error) {
	cfg.Stop = sim.Time(sys.scenario.Duration) + 1
	cfg.FirstFlow = sys.nextFlow
	switch {
	case a.CBR > 0:
		cfg.Rate = a.CBR
	case a.Poisson > 0:
		cfg.Rate, cfg.Gaps = a.Poisson, traffic.Exponential
	default:
		cfg.Rate, cfg.Burst, cfg.Spacing = a.Bursts.Rate, a.Bursts.Frames, sim.Time(a.Bursts.Spacing)
	}
	if err := errors.Join(cfg.Validate()...); err != nil {
		return nil, err
	}
	return traffic.New(cfg, sys.seed, name), nil
}

// datagrams returns the source of UDP traffic.
func (sys *System) datagrams(name string, t spec.Traffic) (*traffic.Generator, error) {
	return sys.generator("traffic/"+name, t.Arrivals, traffic.Config{
		Start: sim.Time(t.Start), Sizes: frameSize(t.Size), Flows: t.Flows, IPv6: t.IPv6,
	})
}

// frameSize returns frames of one size, given as it is on a wire.
func frameSize(size unit.Bytes) []traffic.Size {
	return traffic.FixedSize(int32(size) - model.EthernetFCS)
}

// bind connects the next flows to the socket of a reader, if there is one.
func (sys *System) bind(reader string, flows int) {
	if sock := sys.readers[reader]; sock != nil {
		for f := range flows {
			sys.stack.Bind(sys.nextFlow+model.FlowID(f), sock)
		}
	}
	sys.nextFlow += model.FlowID(flows)
}

// written counts the frames that tasks have sent to interfaces of this host.
func (sys *System) written() (frames int64) {
	for _, d := range sys.taps {
		frames += d.Stats().Frames
	}
	for _, d := range sys.veths {
		frames += d.Stats().Frames
	}
	return frames
}

// usecs returns a time in whole microseconds, rounded up: what the kernel is told.
func usecs(d unit.Duration) int64 {
	return int64((d + unit.Microsecond - 1) / unit.Microsecond)
}

// socketBusyPoll returns the busy-polling settings of an app's sockets. With epoll the
// app's own settings are those of its epoll instance.
func (sys *System) socketBusyPoll(app spec.App) host.BusyPoll {
	if app.Wait == spec.WaitEpoll {
		return host.BusyPoll{Usecs: usecs(sys.scenario.Sysctl.BusyRead)}
	}
	return host.BusyPoll{Usecs: usecs(app.BusyPoll), Prefer: app.PreferBusyPoll, Budget: app.BusyPollBudget}
}

// epollBusyPoll returns the settings of an app's epoll instance.
func (sys *System) epollBusyPoll(app spec.App) host.BusyPoll {
	return host.BusyPoll{
		Usecs: usecs(app.BusyPoll), Prefer: app.PreferBusyPoll, Budget: app.BusyPollBudget,
		PreferSuffices: sys.scenario.Kernel.Behaviours[spec.BusyPoll] == spec.IRQSuspend,
	}
}

// buildRR makes the clients of some request and response traffic, and for each a socket
// that answers it.
func (sys *System) buildRR(name string, t spec.Traffic, p *port) error {
	app := sys.scenario.Apps[t.To]
	jitter := sys.rand("start/" + name)
	key := traffic.DefaultRSSKey()
	if p.clients == nil {
		p.clients = traffic.NewRequesters(sys.eng, phasePeers, p.up)
	}
	for i := range t.Flows {
		flow := sys.nextFlow
		sys.nextFlow++
		cfg := traffic.RequesterConfig{
			Flow: flow, Hash: key.Hash(traffic.FlowTuple(flow)), IPv6: t.IPv6,
			Size:  int32(t.Size) - model.EthernetFCS,
			Think: sim.Time(t.Think), Timeout: sim.Time(t.Timeout),
		}
		if err := errors.Join(cfg.Validate()...); err != nil {
			return err
		}
		sock, err := sys.udpSock(app)
		if err != nil {
			return err
		}
		sys.stack.Bind(flow, sock)
		service := host.NewService(sock, int32(t.Reply)-model.EthernetFCS, p.dev.Xmit)
		sys.startReader(app, t, i, service, host.Serve(service))
		client := p.clients.Add(cfg)
		client.Start(sim.Time(t.Start) + jitter.Uniform(startJitter))
		sys.clients = append(sys.clients, client)
		p.peers.add(flow, client)
	}
	return nil
}
