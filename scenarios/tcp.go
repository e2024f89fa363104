package scenarios

import (
	"errors"

	"napisim/model"
	"napisim/model/link"
	"napisim/model/tcp"
	"napisim/scenarios/spec"
	"napisim/sim"
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
