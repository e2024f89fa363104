package tcp

import (
	"errors"
	"fmt"
	"math"

	"napisim/model"
	"napisim/model/tcp/cong"
	"napisim/model/tcp/rto"
	"napisim/model/tcp/sack"
	"napisim/sim"
)

// Unlimited is the amount of data of a source that never ends.
const Unlimited int64 = math.MaxInt64

// Wire is the way from the sender to the receiver.
type Wire interface {
	// Offer puts a frame on the wire at the instant at, which is the current one.
	// Frames that are offered at one instant leave in the order of the calls. It
	// returns when the last bit will have left the sender's host: until then the
	// frame counts as queued in the host's qdisc or NIC. A wire that never holds
	// frames back returns at. The frame's fate is the wire's to decide; a lost one
	// is still offered, and returns like the others.
	Offer(f model.Frame, at sim.Time) sim.Time
}

// SenderConfig describes a sending peer. DefaultSenderConfig gives the values of a
// current Linux host that sends a stream without end.
type SenderConfig struct {
	// Flow and Hash are written into every frame: the flow's number and the RSS
	// hash that the receiver's NIC will compute.
	Flow model.FlowID
	Hash uint32
	// TOS and TTL are written into every frame.
	TOS, TTL uint8
	// IPv6 sends packets of IPv6, whose headers are longer.
	IPv6 bool
	// MSS is the payload of a full segment in bytes, timestamp option deducted.
	MSS int
	// TSO is gso_max_size: the largest burst in bytes, headers included. 65536
	// makes bursts of 45 segments of 1448 bytes. 0 sends segment by segment.
	TSO int
	// PushBursts sets PSH on the last frame of every burst of two or more, as Linux
	// does since 5.4 so that GRO delivers it at once. Otherwise only the end of a
	// write is pushed.
	PushBursts bool
	// Bytes is what the application writes at the start; Unlimited never ends. More
	// can be written later with Sender.Write.
	Bytes int64
	// WriteSize is how many bytes of it one call to write() holds: the burst that
	// has its last byte is pushed. 0 makes it one write.
	WriteSize int64
	// InitCwnd is the initial congestion window in segments.
	InitCwnd int
	// InitialWindow is the window in bytes that the receiver announced in the
	// handshake: Receiver.Window at the start.
	InitialWindow int64
	// InitialRTT is the round-trip time that the handshake measured; 0 means none.
	InitialRTT sim.Time
	// Congestion is the congestion control, one of cong.Names.
	Congestion string
	// LimitOutput is net.ipv4.tcp_limit_output_bytes: the most that TCP small queues
	// let wait in the sender's own qdisc and NIC. 0 switches small queues off.
	LimitOutput int64
	// RACK turns RACK-TLP on (RFC 8985), as Linux has it by default since 4.18.
	// Without it recovery is that of RFC 6675 alone.
	RACK bool
	// SlowStartAfterIdle is net.ipv4.tcp_slow_start_after_idle: the congestion
	// window falls while nothing is sent.
	SlowStartAfterIdle bool
}

// DefaultSenderConfig returns a current Linux host on a network with an MTU of 1500
// that writes without end, in blocks of 128 KiB as iperf3 does.
func DefaultSenderConfig() SenderConfig {
	return SenderConfig{
		TTL:                64,
		MSS:                1448,
		TSO:                65536,
		PushBursts:         true,
		Bytes:              Unlimited,
		WriteSize:          128 << 10,
		InitCwnd:           10,    // RFC 6928
		InitialWindow:      65160, // 45 segments: what a Linux server announces
		Congestion:         "cubic",
		LimitOutput:        1 << 20,
		RACK:               true,
		SlowStartAfterIdle: true,
	}
}

// Validate returns every fault of the configuration.
func (c *SenderConfig) Validate() []error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(c.MSS >= minMSS && c.MSS <= maxMSS, "mss %d is not within %d and %d", c.MSS, minMSS, maxMSS)
	check(c.TSO >= 0 && c.TSO <= 8*65535, "tso %d is not within 0 and %d", c.TSO, 8*65535)
	check(c.Bytes >= 0, "bytes %d is negative", c.Bytes)
	check(c.WriteSize >= 0, "write size %d is negative", c.WriteSize)
	check(c.InitCwnd >= 1 && c.InitCwnd <= 1<<20, "initial cwnd %d is not within 1 and %d", c.InitCwnd, 1<<20)
	check(c.InitialWindow >= 0 && c.InitialWindow <= 1<<30, "initial window %d is not within 0 and 1 GiB", c.InitialWindow)
	check(c.InitialRTT >= 0, "initial RTT %v is negative", c.InitialRTT)
	check(c.LimitOutput >= 0, "limit_output %d is negative", c.LimitOutput)
	if _, err := cong.New(c.Congestion, max(c.MSS, 1)); err != nil {
		faults = append(faults, err)
	}
	return faults
}

// SenderStats are the counters of a sender, and its state when they were read.
type SenderStats struct {
	// Segments and Bytes are all data sent, retransmissions included; Bursts are the
	// TSO frames that new data went out in.
	Segments, Bytes, Bursts int64
	// BytesAcked is the goodput: what the receiver has acknowledged.
	BytesAcked int64
	// Retrans are all retransmitted segments (tcpi_total_retrans: the column Retr of
	// iperf3). FastRetrans of them were sent in fast recovery, the others after a
	// timeout.
	Retrans, FastRetrans int64
	// RTOs are the retransmission timeouts, Recoveries the fast recoveries begun.
	RTOs, Recoveries int64
	// LostRetrans are retransmissions that RACK has found lost, TailProbes the tail
	// loss probes.
	LostRetrans, TailProbes int64
	// Probes are the probes of a closed window.
	Probes int64
	// Acks are the ACKs received; DupAcks of them brought SACK information and
	// acknowledged nothing, DSACKs reported a duplicate.
	Acks, DupAcks, DSACKs int64
	// Reneged counts the times that the receiver had thrown SACKed data away.
	Reneged int64
	// Deferred counts the times that a small burst was put off for an ACK, Throttled
	// those that small queues held one back.
	Deferred, Throttled int64

	// Cwnd, Ssthresh and SndWnd are windows in bytes, now; Flight is what is
	// outstanding and Pipe how much of it is taken to be in the network.
	Cwnd, Ssthresh, SndWnd, Flight, Pipe int64
	// SRTT and RTO are the smoothed round-trip time and the timeout, now.
	SRTT, RTO sim.Time
}

// state says which part of RFC 5681 governs.
type state uint8

const (
	// open: slow start or congestion avoidance.
	open state = iota
	// recovery: fast recovery of RFC 6675, until recoveryPoint is acknowledged.
	recovery
	// loss: after a timeout, until everything sent before it is acknowledged.
	loss
)

// Sender is a TCP peer on an ideal host: it answers at once, and the only time that
// passes is on the wire. It mirrors the send half of a Linux socket as far as the
// other end can see it. All its methods are called in the engine's context.
type Sender struct {
	cfg   SenderConfig
	eng   *sim.Engine
	phase sim.Phase
	wire  Wire
	cc    cong.Control
	board *sack.Board
	stats SenderStats
	mss   int64

	una, nxt uint64
	dataEnd  uint64 // after the last byte that the application has written
	wndEnd   uint64 // right edge of the receiver's window; it never moves left

	cwnd, ssthresh int64
	state          state
	recoveryPoint  uint64
	rescued        bool // this recovery has had its rescue retransmission
	dupAcks        int
	usage          usage
	rack           rackState
	ackedOrder     int64 // place in the order of sending of the burst acknowledged last

	rtt       rto.Estimator
	lastRTT   sim.Time  // sample of the last ACK; 0 if it gave none
	xmit      rto.Timer // retransmission timeout or, with nothing outstanding, window probe
	resume    rto.Timer // small queues: when the host's own queue has drained
	bursts    ring[burst]
	local     ring[burst] // those whose last bit has not left the host
	localLen  int64
	lastSent  sim.Time // when new data was sent last
	restarted sim.Time // when the window was cut for idleness last
	rxtHigh   uint64   // after the highest octet ever retransmitted (Karn)
	rxtStamp  uint32   // timestamp of the last retransmission
	tsRecent  uint32
	ipid      uint16
}

// burst is one chunk that was sent in one go: a TSO frame of a Linux sender.
type burst struct {
	end    uint64   // sequence number after its last byte
	bytes  int64    // payload
	order  int64    // place of its last frame in the order of sending
	sentAt sim.Time // when it was handed to the wire
	leaves sim.Time // when its last bit has left
}

// The arguments of the sender's events.
const (
	eventStart = iota
	eventXmit
	eventResume
	eventReorder
	eventTailProbe
)

// senderEvents receives the sender's events. It is a type of its own so that Fire
// is no part of the Sender's methods.
type senderEvents Sender

// NewSender returns a sender that is idle until Start. Its events run in the given
// phase. The configuration must be valid.
func NewSender(eng *sim.Engine, phase sim.Phase, cfg SenderConfig, wire Wire) *Sender {
	if faults := cfg.Validate(); len(faults) > 0 {
		panic(fmt.Sprintf("tcp: sender: %v", errors.Join(faults...)))
	}
	cc, err := cong.New(cfg.Congestion, cfg.MSS)
	if err != nil {
		panic("tcp: sender: " + err.Error()) // Validate has seen it
	}
	s := &Sender{
		cfg: cfg, eng: eng, phase: phase, wire: wire, cc: cc, mss: int64(cfg.MSS),
		board: sack.New(FirstSeq, cfg.MSS),
		una:   FirstSeq, nxt: FirstSeq, dataEnd: FirstSeq,
		wndEnd: FirstSeq + uint64(cfg.InitialWindow),
		cwnd:   int64(cfg.InitCwnd) * int64(cfg.MSS), ssthresh: math.MaxInt64,
	}
	if cfg.InitialRTT > 0 {
		s.rtt.Sample(cfg.InitialRTT)
	}
	s.xmit = rto.NewTimer(eng, phase, (*senderEvents)(s), eventXmit)
	s.resume = rto.NewTimer(eng, phase, (*senderEvents)(s), eventResume)
	s.rack.reorder = rto.NewTimer(eng, phase, (*senderEvents)(s), eventReorder)
	s.rack.probe = rto.NewTimer(eng, phase, (*senderEvents)(s), eventTailProbe)
	return s
}

// Start makes the application write its first bytes at the given instant.
func (s *Sender) Start(at sim.Time) {
	s.eng.Schedule(at, s.phase, (*senderEvents)(s), eventStart)
}

// Write appends n bytes to the stream, as one write, and sends what may be sent.
func (s *Sender) Write(n int64) {
	s.dataEnd += uint64(min(n, Unlimited-int64(s.dataEnd-FirstSeq)))
	s.output()
}

// Fire is called by the engine.
func (e *senderEvents) Fire(arg uint64) {
	s := (*Sender)(e)
	switch arg {
	case eventStart:
		s.Write(s.cfg.Bytes)
	case eventXmit:
		if s.xmit.Expired() {
			s.xmitTimeout()
		}
	case eventResume:
		if s.resume.Expired() {
			s.output()
		}
	case eventReorder:
		if s.rack.reorder.Expired() {
			s.reorderTimeout()
		}
	case eventTailProbe:
		if s.rack.probe.Expired() {
			s.probeTail()
		}
	}
}

// xmitTimeout is the expiry of the transmission timer.
func (s *Sender) xmitTimeout() {
	switch {
	case s.una == s.nxt:
		s.probe()
	case s.rack.probe.Deadline() <= s.eng.Now():
		// A tail loss probe that is due together with the timeout comes in its place.
		s.rack.probe.Stop()
		s.probeTail()
	default:
		s.timeout()
	}
}

// Done reports whether everything that was written has been acknowledged.
func (s *Sender) Done() bool { return s.una == s.dataEnd }

// Stats returns the counters and the present state.
func (s *Sender) Stats() SenderStats {
	st := s.stats
	st.BytesAcked = int64(s.una - FirstSeq)
	st.Cwnd, st.Ssthresh = s.cwnd, s.ssthresh
	st.SndWnd, st.Flight, st.Pipe = int64(s.wndEnd-s.una), s.flight(), s.board.Pipe()
	st.SRTT, st.RTO = s.rtt.SRTT(), s.rtt.Timeout()
	return st
}

// flight is FlightSize of RFC 5681: sent and not acknowledged.
func (s *Sender) flight() int64 { return int64(s.nxt - s.una) }

// Check returns an error if the sender's state contradicts itself.
func (s *Sender) Check() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("tcp sender of flow %d: "+format, append([]any{s.cfg.Flow}, args...)...))
		}
	}
	faults = append(faults, s.board.Check())
	check(s.una <= s.nxt && s.nxt <= s.dataEnd, "una %d, nxt %d, end of data %d", s.una, s.nxt, s.dataEnd)
	check(s.nxt <= s.wndEnd, "nxt %d is beyond the window's edge %d", s.nxt, s.wndEnd)
	check(s.cwnd >= s.mss, "cwnd %d is below one segment", s.cwnd)
	check(s.una == s.nxt || s.xmit.Running(), "data is outstanding and no timer runs")
	check(s.una < s.nxt || s.board.Pipe() == 0, "nothing is outstanding, pipe is %d", s.board.Pipe())
	sent := s.stats.Bytes - int64(s.nxt-FirstSeq)
	check(sent >= 0 && (sent > 0) == (s.stats.Retrans > 0), "%d bytes sent again in %d segments", sent, s.stats.Retrans)
	return errors.Join(faults...)
}
