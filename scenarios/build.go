package scenarios

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/cpu/fair"
	"napisim/model/host"
	"napisim/model/link"
	"napisim/model/skbuff"
	"napisim/model/tcp"
	"napisim/model/traffic"
	"napisim/nic"
	"napisim/nic/driver"
	"napisim/scenarios/spec"
	"napisim/sim"
	"napisim/softirq"
	"napisim/softirq/gro"
	"napisim/softirq/rps"
	"napisim/softirq/stack"
)

// Build puts a resolved scenario together for one run with a seed. The order of
// construction is the order of names, so that it does not depend on the order in a
// file. The caller must Close the system.
func Build(s *spec.Scenario, seed uint64, o Options) (*System, error) {
	sys := &System{scenario: s, seed: seed, eng: sim.NewEngine(o.Mode)}
	if o.TieSeed != 0 {
		sys.eng = sim.NewEngineShuffled(o.Mode, o.TieSeed)
	}
	sys.env = host.Env{SKBs: &model.SKBPool{}, Losses: &model.Losses{}}
	for _, step := range []func() error{sys.buildMachine, sys.buildKernel, sys.buildPorts, sys.buildVirtual, sys.buildApps, sys.buildTraffic, sys.buildSenders} {
		if err := step(); err != nil {
			sys.Close()
			return nil, err
		}
	}
	for _, p := range sys.ports {
		p.dev.Open()
	}
	sys.machine.Trace = o.Trace
	sys.register()
	return sys, nil
}

// Close releases the coroutines of the run.
func (sys *System) Close() { sys.eng.Close() }

// rand returns the stream of random numbers of a named component.
func (sys *System) rand(name string) *sim.Rand { return sim.NewRand(sys.seed, name) }

func (sys *System) buildMachine() error {
	costs, err := sys.costs()
	if err != nil {
		return err
	}
	preempt, err := cpu.ParsePreemption(string(sys.scenario.Preempt))
	if err != nil {
		return err
	}
	scheduler, err := fair.Parse(sys.scenario.Kernel.Behaviours[spec.Scheduler])
	if err != nil {
		return err
	}
	tick := sim.Time(sys.scenario.HZ.Tick())
	cfg := cpu.Config{
		Cores: sys.scenario.CPUs, HZ: int(sys.scenario.HZ), Preempt: preempt, Costs: costs,
		IRQTimeAccounting: sys.scenario.Platform.IRQTimeAccounting,

		ThreadIRQs: sys.scenario.Kernel.ThreadIRQs, PreemptRT: sys.scenario.Kernel.PreemptRT,
		Scheduler: scheduler,

		IPILatency: sim.Microsecond,
		TickPhase:  sys.rand("tick").Uniform(tick),
	}
	if err := errors.Join(cfg.Validate()...); err != nil {
		return err
	}
	sys.machine = cpu.NewMachine(sys.eng, cfg)
	return nil
}

// costs returns the price list of this run: the platform's costs, each varied by the
// platform's noise. The variation belongs to the run, not to a single occurrence:
// caches, alignment and clocks differ from boot to boot, and stay for its length.
func (sys *System) costs() (costs model.Costs, err error) {
	p := &sys.scenario.Platform
	for _, name := range slices.Sorted(maps.Keys(p.Costs)) {
		stage, err := model.ParseStage(name)
		if err != nil {
			return costs, err
		}
		c := p.Costs[name]
		if stage.PerByte() != (c.Per == spec.PerByte) {
			return costs, fmt.Errorf("platform %s: costs.%s: is charged per %s", p.Name, name, map[bool]string{true: "byte", false: "occurrence"}[stage.PerByte()])
		}
		costs[stage] = vary(sim.Time(c.Cost), int64(p.Noise), sys.rand("cost/"+name))
	}
	return costs, nil
}

// vary draws a cost around its mean. ppm is the standard deviation in parts per
// million of the mean; the sum of twelve uniforms is close to normal, and an
// integer. Costs stay above a tenth of their mean.
func vary(mean sim.Time, ppm int64, r *sim.Rand) sim.Time {
	const scale = 1_000_000
	deviation := int64(-6 * scale)
	for range 12 {
		deviation += int64(r.IntN(scale))
	}
	varied := mean + sim.Time(int64(mean)/1000*ppm/1000*deviation/scale)
	return max(varied, mean/10)
}

// KernelConfig returns what the kernel of a resolved scenario does.
func KernelConfig(s *spec.Scenario) softirq.Config {
	return softirq.Config{
		NAPISchedule: s.Kernel.Behaviours[spec.NAPISchedule],
		Ksoftirqd:    s.Kernel.Behaviours[spec.Ksoftirqd],
		GRONormal:    s.Kernel.Behaviours[spec.GRONormal],
		NetifRx:      s.Kernel.Behaviours[spec.NetifRx],

		NAPISchedulePrep: s.Kernel.Behaviours[spec.NAPISchedulePrep],
		NAPIComplete:     s.Kernel.Behaviours[spec.NAPIComplete],
		NAPIThreaded:     s.Kernel.Behaviours[spec.NAPIThreaded],
		BusyPoll:         s.Kernel.Behaviours[spec.BusyPoll],

		ForcedThreaded: s.Kernel.ThreadIRQs || s.Kernel.PreemptRT,
		TimerThread:    s.Kernel.Behaviours[spec.TimerThread] == spec.KTimers,

		NetdevBudget:      s.Sysctl.NetdevBudget,
		NetdevBudgetUsecs: sim.Time(s.Sysctl.NetdevBudgetUsecs),
		GRONormalBatch:    s.Sysctl.GRONormalBatch,
		NetdevMaxBacklog:  s.Sysctl.NetdevMaxBacklog,
		DevWeight:         s.Sysctl.DevWeight,
		DevWeightRXBias:   s.Sysctl.DevWeightRXBias,
		FlowLimitCPUs:     uint64(s.Sysctl.FlowLimitCPUs),
		FlowLimitTableLen: s.Sysctl.FlowLimitTableLen,
		BacklogThreads:    s.Kernel.ThreadBacklogNAPI,
	}
}

func (sys *System) buildKernel() error {
	cfg := KernelConfig(sys.scenario)
	if err := errors.Join(cfg.Validate()...); err != nil {
		return err
	}
	heads := skbuff.Config{
		Cache:    sys.scenario.Kernel.Behaviours[spec.SKBCache],
		Defer:    sys.scenario.Kernel.Behaviours[spec.SKBDeferFree],
		DeferMax: sys.scenario.Sysctl.SKBDeferMax,
	}
	if err := errors.Join(heads.Validate()...); err != nil {
		return err
	}
	sys.env.Heads = skbuff.New(heads, sys.machine, sys.env.SKBs)
	// One stack serves all interfaces: the socket of a flow does not depend on the way
	// by which its packets come.
	k := stack.New(&sys.env)
	k.RouteHint = sys.scenario.Kernel.Behaviours[spec.IPList] == spec.RouteHint
	for _, c := range sys.machine.Cores {
		sd := softirq.NewSoftnet(c, cfg, k, sys.env.SKBs)
		sd.SetHeads(sys.env.Heads)
		sys.softnets = append(sys.softnets, sd)
	}
	sys.stack = k
	sys.connect()
	sys.busy = softirq.NewBusyPoller(sys.softnets)
	return nil
}

// connect joins the cores: what backlogs drop, and RPS if some interface uses it.
func (sys *System) connect() {
	s := sys.scenario
	links := softirq.Links{Drop: sys.env.Drop, Socks: rps.NewSockFlows(s.Sysctl.RPSSockFlowEntries)}
	links.RPS = sys.usesRPS()
	if links.Socks != nil {
		sys.env.RecordFlow = links.Socks.Record
	}
	softirq.Connect(sys.softnets, links)
}

// usesRPS reports whether some interface spreads its packets.
func (sys *System) usesRPS() bool {
	s := sys.scenario
	used := false
	for _, n := range s.NICs {
		used = used || n.Queues.RX0 != spec.RXQueue{}
	}
	for _, t := range s.Taps {
		used = used || t.Queues.RX0 != spec.RXQueue{}
	}
	for _, v := range s.Veths {
		used = used || v.Queues.RX0 != spec.RXQueue{}
	}
	return used
}

// usesBacklog reports whether packets may go by the backlogs.
func (sys *System) usesBacklog() bool {
	return sys.usesRPS() || len(sys.taps)+len(sys.veths) > 0
}

// steering returns the steering of a receive queue, nil where it has none.
func (sys *System) steering(q spec.RXQueue) (*rps.Queue, []error) {
	cfg := rps.Config{CPUs: uint64(q.RPSCPUs), FlowCount: q.RPSFlowCnt}
	return rps.NewQueue(cfg), cfg.Validate(sys.scenario.CPUs)
}

func (sys *System) buildPorts() error {
	s := sys.scenario
	for i, name := range slices.Sorted(maps.Keys(s.NICs)) {
		if err := sys.buildPort(i, name, s.NICs[name]); err != nil {
			return fmt.Errorf("nics.%s: %w", name, err)
		}
	}
	return nil
}

func (sys *System) buildPort(i int, name string, n spec.NIC) error {
	wire := link.Config{Rate: n.Link.Rate, Delay: sim.Time(n.Link.Delay)}
	devCfg := nic.Config{
		RXRing: n.Rings.RX, TXRing: n.Rings.TX,
		RX:        nic.Coalesce{Usecs: sim.Time(n.Coalesce.RXUsecs), Frames: n.Coalesce.RXFrames},
		TX:        nic.Coalesce{Usecs: sim.Time(n.Coalesce.TXUsecs), Frames: n.Coalesce.TXFrames},
		TXLatency: sim.Microsecond,
	}
	drvCfg, err := sys.driverConfig(i, name, n)
	if err != nil {
		return err
	}
	if n.Driver == spec.DriverLAN966x {
		devCfg.SharedVector, devCfg.Rearm = true, nic.LatchEvents
		drvCfg.Buffer, drvCfg.BuildSKB = 4096, true
	}
	if err := errors.Join(slices.Concat(wire.Validate(), devCfg.Validate(), drvCfg.Validate())...); err != nil {
		return err
	}
	p := &port{name: name, in: link.NewPipe(wire), peers: &peers{}}
	p.up = &uplink{pipe: p.in, rate: int64(wire.Rate)}
	p.out = link.NewEgress(sys.eng, phaseLinks+sim.Phase(i), wire, p.peers)
	dev := nic.New(sys.eng, phaseNICs+sim.Phase(i), devCfg, p.in, p.out)
	h := sys.driverHost()
	if n.Driver == spec.DriverLAN966x {
		p.dev = driver.NewLAN966x(drvCfg, h, dev).Netdev
	} else {
		p.dev = driver.NewGeneric(drvCfg, h, dev).Netdev
	}
	sys.ports = append(sys.ports, p)
	sys.busy.Add(p.dev.NAPI())
	how := map[spec.Threaded]softirq.Threading{spec.ThreadedEnabled: softirq.Threaded, spec.ThreadedBusyPoll: softirq.ThreadedBusyPoll}[n.NAPI.Threaded]
	return p.dev.SetThreaded(sys.softnets[n.NAPI.ThreadCPU], how)
}

// firstIRQ is the Linux interrupt number of the first vector.
const firstIRQ = 32

func (sys *System) driverConfig(i int, name string, n spec.NIC) (driver.Config, error) {
	recycle, err := driver.ParseRecycle(sys.scenario.Kernel.Behaviours[spec.PagePoolRecycle])
	cfg := driver.Config{
		Name: name, Buffer: 2048, GROFrags: n.GROFrags, XDPDrop: n.XDP == spec.XDPDrop, RXCsum: n.Features.RX,
		Pool:  driver.PagePoolConfig{Size: n.PagePool.Size, Recycle: recycle},
		RXIRQ: firstIRQ + 2*i, TXIRQ: firstIRQ + 2*i + 1,
		RXCPU: n.IRQ.RX, TXCPU: n.IRQ.TX,
		GROFlushTimeout: sim.Time(n.NAPI.GROFlushTimeout), DeferHardIRQs: n.NAPI.DeferHardIRQs,
		IRQSuspendTimeout: sim.Time(n.NAPI.IRQSuspendTimeout),
	}
	if n.MTU+model.EthernetHeader > cfg.Buffer {
		cfg.Buffer = (n.MTU + model.EthernetHeader + 4095) / 4096 * 4096
	}
	if err == nil {
		cfg.Head, err = skbuff.HeadSize(sys.scenario.Kernel.Behaviours[spec.SKBSmallHead], skbuff.GROMaxHead)
	}
	if err == nil && n.Features.GRO {
		if cfg.GRO, err = sys.groConfig(n); err == nil {
			cfg.GRO.HeadTruesize = cfg.Head + model.SKBHead
		}
	}
	steer, faults := sys.steering(n.Queues.RX0)
	cfg.RPS = steer
	return cfg, errors.Join(append(faults, err)...)
}

// groConfig is GRO as the kernel's version and the interface's settings have it.
func (sys *System) groConfig(n spec.NIC) (*gro.Config, error) {
	k := sys.scenario.Kernel
	g, err := gro.ForVersion(k.Behaviours[spec.GROTable], k.Behaviours[spec.UDPGRO])
	if err != nil {
		return nil, err
	}
	g.MaxFrags, g.Sockets = k.MaxSKBFrags, sys.stack
	g.FragList, g.UDPForward = n.Features.RXGROList, n.Features.RXUDPGROForwarding
	return &g, g.SetSizes(k.Behaviours[spec.GROMaxSize], int(n.GROMaxSize), int(n.GROIPv4MaxSize))
}

func (sys *System) buildApps() error {
	s := sys.scenario
	sys.readers = map[string]*host.UDPSock{}
	sys.epolls = map[string]*host.Epoll{}
	for _, name := range slices.Sorted(maps.Keys(s.Apps)) {
		app := s.Apps[name]
		switch app.Kind {
		case spec.AppUDPReader:
			sock, err := sys.udpSock(app)
			if err != nil {
				return err
			}
			sys.readers[name] = sock
			if app.Wait == spec.WaitEpoll {
				sys.epoll(name, app).Add(sock)
			} else {
				sys.start(app, name, host.Datagrams(sock))
			}
		case spec.AppCPUHog:
			sys.start(app, name, host.Hog)
		case spec.AppTCPReader, spec.AppUDPServer: // a task for each connection or client, made with the traffic
		case spec.AppTunWriter, spec.AppVhost, spec.AppUDPSender: // made by buildSenders
		}
	}
	return nil
}

// udpSock makes a UDP socket of an app.
func (sys *System) udpSock(app spec.App) (*host.UDPSock, error) {
	k := sys.scenario.Kernel.Behaviours
	cfg := host.UDPConfig{
		RcvBuf: sys.udpRcvbuf(app), GRO: app.UDPGRO && k[spec.UDPGRO] != "none",
		Rcvbuf: k[spec.UDPRcvbuf], Wakeup: k[spec.UDPWakeup],
	}
	if err := errors.Join(cfg.Validate()...); err != nil {
		return nil, err
	}
	sock := host.NewUDPSock(&sys.env, cfg)
	sock.SetBusyPoll(sys.busy, sys.socketBusyPoll(app))
	sys.udp = append(sys.udp, sock)
	return sock, nil
}

// epoll returns the epoll instance of an app, and makes it and its task first.
func (sys *System) epoll(name string, app spec.App) *host.Epoll {
	if sys.epolls[name] == nil {
		ep := host.NewEpoll()
		if sys.scenario.Kernel.Behaviours[spec.BusyPoll] != spec.EachPoll {
			ep.SetBusyPoll(sys.busy, sys.epollBusyPoll(app))
		}
		sys.epolls[name] = ep
		sys.start(app, name, host.EventLoop(ep, int(app.ReadSize)))
	}
	return sys.epolls[name]
}

// udpRcvbuf is sk_rcvbuf: the default, or twice what the application asks for, up
// to twice net.core.rmem_max.
func (sys *System) udpRcvbuf(app spec.App) int {
	if app.Rcvbuf == 0 {
		return int(sys.scenario.Sysctl.RmemDefault)
	}
	return 2 * int(min(app.Rcvbuf, sys.scenario.Sysctl.RmemMax))
}

// start makes a task that runs from the beginning.
func (sys *System) start(app spec.App, name string, body func(*cpu.Task)) {
	c := sys.machine.Cores[app.CPU]
	sys.machine.NewTask(c, name, cpu.TaskConfig{Nice: app.Nice}, body).WakeFromDevice()
}

func (sys *System) buildTraffic() error {
	s := sys.scenario
	for _, name := range slices.Sorted(maps.Keys(s.Traffic)) {
		t := s.Traffic[name]
		if d := sys.veths[t.NIC]; d != nil {
			if err := sys.buildQdisc(name, t, d); err != nil {
				return fmt.Errorf("traffic.%s: %w", name, err)
			}
			continue
		}
		p := sys.ports[slices.IndexFunc(sys.ports, func(p *port) bool { return p.name == t.NIC })]
		var err error
		switch t.Kind {
		case spec.TrafficTCP:
			err = sys.buildTCP(name, t, p)
		case spec.TrafficRR:
			err = sys.buildRR(name, t, p)
		default:
			err = sys.buildUDP(name, t, p)
		}
		if err != nil {
			return fmt.Errorf("traffic.%s: %w", name, err)
		}
	}
	return nil
}

func (sys *System) buildUDP(name string, t spec.Traffic, p *port) error {
	src, err := sys.datagrams(name, t)
	if err != nil {
		return err
	}
	p.in.Attach(src)
	sys.bind(t.To, t.Flows)
	return nil
}

// startJitter is the range in which the connections of one peer start: threads of
// iperf3 do not start at one instant.
const startJitter = sim.Millisecond

// startReader gives connection or client i of some traffic its reader: a task with that
// body, or a place in the epoll instance of the app.
func (sys *System) startReader(app spec.App, t spec.Traffic, i int, sock host.Pollable, body func(*cpu.Task)) {
	if app.Wait == spec.WaitEpoll {
		sys.epoll(t.To, app).Add(sock)
		return
	}
	task := t.To
	if t.Flows > 1 {
		task = fmt.Sprintf("%s/%d", t.To, i)
	}
	sys.start(app, task, body)
}

func (sys *System) buildTCP(name string, t spec.Traffic, p *port) error {
	app := sys.scenario.Apps[t.To]
	jitter := sys.rand("start/" + name)
	key := traffic.DefaultRSSKey()
	for i := range t.Flows {
		flow := sys.nextFlow
		sys.nextFlow++
		rcvCfg, err := sys.receiverConfig(flow, t, app)
		if err != nil {
			return err
		}
		rcv := tcp.NewReceiver(rcvCfg, sys.env.SKBs)
		sndCfg := sys.senderConfig(flow, t, rcvCfg)
		sndCfg.InitialWindow = int64(rcv.Window())
		sndCfg.Hash = key.Hash(traffic.FlowTuple(flow))
		if err := errors.Join(sndCfg.Validate()...); err != nil {
			return err
		}
		sock := host.NewTCPSock(&sys.env, sys.machine.Cores[app.CPU], rcv, p.dev.Xmit)
		sock.SetBusyPoll(sys.busy, sys.socketBusyPoll(app))
		sys.stack.Bind(flow, sock)
		sys.tcp = append(sys.tcp, sock)
		sys.startReader(app, t, i, sock, host.Stream(sock, int(app.ReadSize)))

		snd := tcp.NewSender(sys.eng, phasePeers, sndCfg, p.up)
		snd.Start(sim.Time(t.Start) + jitter.Uniform(startJitter))
		sys.senders = append(sys.senders, snd)
		p.peers.add(flow, snd)
	}
	return nil
}
