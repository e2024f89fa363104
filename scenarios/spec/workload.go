package spec

import (
	"napisim/model/unit"
)

// App is a task in user space.
type App struct {
	// What the task does.
	Kind AppKind `yaml:"kind" required:"true"`
	// The CPU that the task is bound to.
	CPU int `yaml:"cpu" default:"0" min:"0" kernel:"sched_setaffinity"`
	// The nice value of the task.
	Nice int `yaml:"nice" default:"0" min:"-20" max:"19" kernel:"setpriority"`
	// The size of the buffer that each read call offers.
	ReadSize unit.Bytes `yaml:"read_size" default:"128KiB" min:"1B" max:"1GiB" for:"tcp-reader,udp-reader" kernel:"recv len"`
	// How the task waits for data: in recv with a task for each connection or client, or one task in
	// epoll_wait for all of them, which then reads each ready socket until it would block.
	Wait AppWait `yaml:"wait" default:"recv" for:"tcp-reader,udp-reader,udp-server"`
	// The receive buffer that the task asks for, which also ends its autotuning. 0 leaves
	// the choice to the kernel: net.ipv4.tcp_rmem or net.core.rmem_default.
	Rcvbuf unit.Bytes `yaml:"rcvbuf" default:"0B" max:"1GiB" for:"tcp-reader,udp-reader,udp-server" kernel:"SO_RCVBUF"`
	// Whether the task asks for merged datagrams, so that one read may return several.
	UDPGRO bool `yaml:"udp_gro" default:"off" for:"udp-reader" kernel:"UDP_GRO"`

	// The interface that the task sends to: a tap device, or for udp-sender a veth pair.
	Device string `yaml:"device" required:"true" for:"tun-writer,vhost,udp-sender"`
	// The app that reads what the task sends. Without one it meets no socket and is dropped.
	To string `yaml:"to" for:"tun-writer,vhost,udp-sender"`
	// The number of flows that what is sent belongs to, in turn.
	Flows int `yaml:"flows" default:"1" min:"1" max:"65536" for:"tun-writer,vhost,udp-sender"`
	// The size of each frame as on a wire, from the Ethernet header to the checksum.
	Size unit.Bytes `yaml:"size" required:"true" min:"64B" max:"65535B" for:"tun-writer,vhost,udp-sender"`
	// When frames become due. What the task has no time for waits.
	Arrivals Arrivals `yaml:"arrivals" required:"true" oneof:"true" for:"tun-writer,vhost,udp-sender"`

	// How long the task polls the network card by itself before it sleeps, in the kernel's
	// microseconds of 1024 ns; 0: not at all. A task that waits in epoll_wait polls there, by the
	// settings of its epoll instance; the kernel has had them since v6.9.
	BusyPoll unit.Duration `yaml:"busy_poll" derived:"net.core.busy_read, or net.core.busy_poll with wait: epoll" max:"2147s" bare:"us" for:"tcp-reader,udp-reader,udp-server" kernel:"SO_BUSY_POLL, EPIOCSPARAMS busy_poll_usecs"`
	// Whether the task would rather poll than be served by softirqs, which then leave the card
	// to it when they have much to do. With napi_defer_hard_irqs and gro_flush_timeout the
	// interrupt stays masked between two of its polls.
	PreferBusyPoll bool `yaml:"prefer_busy_poll" default:"off" for:"tcp-reader,udp-reader,udp-server" kernel:"SO_PREFER_BUSY_POLL, EPIOCSPARAMS prefer_busy_poll"`
	// The most frames of one of these polls; 0 stands for the kernel's 8.
	BusyPollBudget int `yaml:"busy_poll_budget" default:"0" min:"0" max:"65535" unit:"frames" for:"tcp-reader,udp-reader,udp-server" kernel:"SO_BUSY_POLL_BUDGET, EPIOCSPARAMS busy_poll_budget"`
}

// BusyPolls reports whether an app may poll busily.
func (s *Scenario) BusyPolls() bool {
	for _, app := range s.Apps {
		if app.BusyPoll > 0 || app.PreferBusyPoll {
			return true
		}
	}
	return s.Sysctl.BusyRead > 0
}

// AppKind says what a task does.
type AppKind string

// The kinds of tasks.
const (
	AppTCPReader AppKind = "tcp-reader" // reads TCP connections as fast as it can
	AppUDPReader AppKind = "udp-reader" // reads a UDP socket as fast as it can
	AppUDPServer AppKind = "udp-server" // answers each request of rr traffic
	AppCPUHog    AppKind = "cpu-hog"    // computes without end
	AppTunWriter AppKind = "tun-writer" // writes frames to a tap device, one a system call
	AppVhost     AppKind = "vhost"      // the vhost thread of a guest, which writes its packets to a tap device
	AppUDPSender AppKind = "udp-sender" // sends datagrams over a veth pair, one a system call
)

// Values returns the kinds that can be written.
func (AppKind) Values() []string {
	return []string{
		string(AppTCPReader), string(AppUDPReader), string(AppUDPServer), string(AppCPUHog),
		string(AppTunWriter), string(AppVhost), string(AppUDPSender),
	}
}

// AppWait says how a reader waits.
type AppWait string

// The ways to wait.
const (
	WaitRecv  AppWait = "recv"  // blocks in recv
	WaitEpoll AppWait = "epoll" // blocks in epoll_wait
)

// Values returns the ways that can be written.
func (AppWait) Values() []string { return []string{string(WaitRecv), string(WaitEpoll)} }

// reads reports whether tasks of this kind read sockets.
func (k AppKind) reads() bool {
	return k == AppTCPReader || k == AppUDPReader || k == AppUDPServer
}

// sends reports whether tasks of this kind send frames.
func (k AppKind) sends() bool { return k == AppTunWriter || k == AppVhost || k == AppUDPSender }

// Traffic is what one peer sends.
type Traffic struct {
	// Whether the peer sends a stream and reacts to the receiver (tcp), sends datagrams whatever
	// becomes of them (udp), or sends a request and waits for the answer (rr).
	Kind TrafficKind `yaml:"kind" required:"true"`
	// The network card that the traffic arrives at. UDP may name a veth pair: then a queueing
	// discipline of its sending end lets the frames out, in the NET_TX softirq.
	NIC string `yaml:"nic" required:"true"`
	// The app that reads the traffic. UDP without a reader meets no socket and is dropped.
	To string `yaml:"to"`
	// The number of flows: TCP connections, UDP senders that take turns, or clients with one
	// request each at a time.
	Flows int `yaml:"flows" default:"1" min:"1" max:"65536"`
	// Whether the packets are of IPv6, whose header is 20 bytes longer than that of IPv4.
	IPv6 bool `yaml:"ipv6" default:"off"`
	// When the peer starts to send.
	Start unit.Duration `yaml:"start" default:"0s"`

	// The largest piece of a stream that the peer's stack hands down at once; its last
	// segment carries the PSH flag.
	TSO unit.Bytes `yaml:"tso" default:"64KiB" max:"512KiB" for:"tcp" kernel:"gso_max_size"`
	// The payload of a full segment.
	MSS unit.Bytes `yaml:"mss" derived:"what the MTU leaves beside IP, TCP and timestamps: mtu - 52, or mtu - 72 with IPv6" min:"1B" max:"65535B" bare:"B" for:"tcp" kernel:"TCP_MAXSEG"`
	// How the peer reacts to loss.
	Congestion Congestion `yaml:"congestion" default:"cubic" for:"tcp" kernel:"net.ipv4.tcp_congestion_control"`
	// The congestion window that a connection starts with.
	InitCwnd int `yaml:"init_cwnd" default:"10" min:"1" max:"1000" unit:"segments" for:"tcp" kernel:"initcwnd"`

	// The size of each frame on the wire, from the Ethernet header to the checksum.
	Size unit.Bytes `yaml:"size" required:"true" min:"64B" for:"udp,rr"`
	// When frames are sent, over all flows together.
	Arrivals Arrivals `yaml:"arrivals" required:"true" oneof:"true" for:"udp"`

	// The size of each answer's frame on the wire.
	Reply unit.Bytes `yaml:"reply" default:"64B" min:"64B" for:"rr"`
	// The time from an answer to the client's next request: what its own machine takes.
	Think unit.Duration `yaml:"think" default:"0s" for:"rr"`
	// The time after which a request without an answer is sent again.
	Timeout unit.Duration `yaml:"timeout" default:"200ms" min:"1us" for:"rr"`
}

// TrafficKind says how a peer sends.
type TrafficKind string

// The kinds of traffic.
const (
	TrafficTCP TrafficKind = "tcp"
	TrafficUDP TrafficKind = "udp"
	TrafficRR  TrafficKind = "rr" // requests and answers over UDP
)

// Values returns the kinds that can be written.
func (TrafficKind) Values() []string {
	return []string{string(TrafficTCP), string(TrafficUDP), string(TrafficRR)}
}

// ipHeader is the length of the IP header of the traffic's packets.
func (t Traffic) ipHeader() int {
	if t.IPv6 {
		return ipv6Header
	}
	return ipv4Header
}

// reader returns the kind of app that reads the traffic.
func (k TrafficKind) reader() AppKind {
	switch k {
	case TrafficTCP:
		return AppTCPReader
	case TrafficRR:
		return AppUDPServer
	}
	return AppUDPReader
}

// Congestion names the congestion control of a peer.
type Congestion string

// The congestion controls of peers.
const (
	CongestionReno  Congestion = "reno"  // RFC 5681
	CongestionCubic Congestion = "cubic" // RFC 9438, what Linux does by default
)

// Values returns the algorithms that can be written.
func (Congestion) Values() []string {
	return []string{string(CongestionReno), string(CongestionCubic)}
}

// Arrivals is an arrival process: exactly one of its fields has a value.
type Arrivals struct {
	// Frames at equal distances.
	CBR unit.PacketRate `yaml:"cbr" min:"0.001pps"`
	// Frames at random, with exponential distances; this is their mean rate.
	Poisson unit.PacketRate `yaml:"poisson" min:"0.001pps"`
	// Frames in groups.
	Bursts Bursts `yaml:"bursts"`
}

// Bursts is traffic that comes in groups of frames at equal distances.
type Bursts struct {
	// The mean rate over groups and pauses together.
	Rate unit.PacketRate `yaml:"rate" required:"true" min:"0.001pps"`
	// The number of frames in each group.
	Frames int `yaml:"frames" default:"32" min:"1" max:"65536" unit:"frames"`
	// The time from the start of one frame of a group to that of the next;
	// back-to-back is as close as the link allows.
	Spacing Spacing `yaml:"spacing" default:"back-to-back"`
}

// Spacing is the distance of frames in a group. Zero is back to back.
type Spacing unit.Duration

const backToBack = "back-to-back"

// String returns the distance, or back-to-back.
func (s Spacing) String() string {
	if s == 0 {
		return backToBack
	}
	return unit.Duration(s).String()
}

// MarshalText writes the distance as UnmarshalText reads it; a negative one is an error.
func (s Spacing) MarshalText() ([]byte, error) {
	if s == 0 {
		return []byte(backToBack), nil
	}
	return unit.Duration(s).MarshalText()
}

// UnmarshalText reads a duration or back-to-back.
func (s *Spacing) UnmarshalText(text []byte) error {
	if string(text) == backToBack {
		*s = 0
		return nil
	}
	return (*unit.Duration)(s).UnmarshalText(text)
}
