package spec

import "napisim/model/unit"

// NIC is a network card with its driver and its settings.
type NIC struct {
	// The driver, which decides how vectors, rings and NAPI instances hang together.
	Driver Driver `yaml:"driver" default:"generic"`
	// The cable and what is at its other end.
	Link Link `yaml:"link" required:"true" shorthand:"rate"`
	// The largest IP packet that the link carries.
	MTU int `yaml:"mtu" default:"1500" min:"68" max:"65535" unit:"bytes" kernel:"ip link set mtu"`
	// The sizes of the descriptor rings.
	Rings Rings `yaml:"rings" kernel:"ethtool -G"`
	// The interrupt moderation.
	Coalesce Coalesce `yaml:"coalesce" kernel:"ethtool -C"`
	// The offloads.
	Features Features `yaml:"features" kernel:"ethtool -K"`
	// How the kernel polls the card.
	NAPI NAPI `yaml:"napi"`
	// The bound of the packets that GRO makes, headers included: for IPv6, and up to 65536
	// for IPv4 as well. 0 leaves the kernel its 65536.
	GROMaxSize unit.Bytes `yaml:"gro_max_size" default:"0B" max:"524280B" bare:"B" kernel:"ip link set gro_max_size"`
	// The same bound for IPv4 alone.
	GROIPv4MaxSize unit.Bytes `yaml:"gro_ipv4_max_size" default:"0B" max:"524280B" bare:"B" kernel:"ip link set gro_ipv4_max_size"`
	// Whether the driver hands packets up by napi_gro_frags, with the payload in page
	// fragments, as mlx4 and sfc do; otherwise by napi_gro_receive.
	GROFrags bool `yaml:"gro_frags" default:"off" kernel:"napi_gro_frags"`
	// Where the interrupts go.
	IRQ IRQ `yaml:"irq"`
	// The memory that frames are received into.
	PagePool PagePool `yaml:"page_pool"`
	// How the kernel spreads what the receive queue takes in.
	Queues Queues `yaml:"queues" kernel:"/sys/class/net/IF/queues"`
	// What an XDP program does with every frame, before there is an skb.
	XDP XDP `yaml:"xdp" default:"pass" kernel:"ip link set xdp"`
}

// Driver names a driver model.
type Driver string

// The driver models.
const (
	// DriverGeneric has a vector and a NAPI instance of its own for each direction.
	DriverGeneric Driver = "generic"
	// DriverLAN966x has one vector and one NAPI instance that RX and TX share.
	DriverLAN966x Driver = "lan966x"
)

// Values returns the drivers that can be written.
func (Driver) Values() []string { return []string{string(DriverGeneric), string(DriverLAN966x)} }

// Link is the cable between the card and the sender.
type Link struct {
	// The speed in each direction.
	Rate unit.BitRate `yaml:"rate" required:"true" min:"1kbps" max:"10Tbps"`
	// The time from one end to the other, each way: cable, switches and the sender's own
	// stack together.
	Delay unit.Duration `yaml:"delay" default:"0s" max:"10s"`
}

// Rings are the sizes of the descriptor rings.
type Rings struct {
	// The number of RX descriptors: a frame that finds none free is missed.
	RX int `yaml:"rx" default:"512" min:"1" max:"65536" why:"no network card has such a ring" unit:"descriptors" kernel:"ethtool -G rx"`
	// The number of TX descriptors.
	TX int `yaml:"tx" default:"512" min:"1" max:"65536" why:"no network card has such a ring" unit:"descriptors" kernel:"ethtool -G tx"`
}

// Coalesce is the interrupt moderation. All values at zero mean none.
type Coalesce struct {
	// The longest time that a received frame waits for its interrupt.
	RXUsecs unit.Duration `yaml:"rx-usecs" default:"0s" max:"1s" bare:"us" kernel:"ethtool -C rx-usecs"`
	// The number of received frames that raise the interrupt before its time; 0: no limit.
	RXFrames int `yaml:"rx-frames" default:"0" min:"0" max:"65536" unit:"frames" kernel:"ethtool -C rx-frames"`
	// The longest time that a sent frame waits for its completion interrupt.
	TXUsecs unit.Duration `yaml:"tx-usecs" default:"0s" max:"1s" bare:"us" kernel:"ethtool -C tx-usecs"`
	// The number of sent frames that raise the interrupt before its time; 0: no limit.
	TXFrames int `yaml:"tx-frames" default:"0" min:"0" max:"65536" unit:"frames" kernel:"ethtool -C tx-frames"`
}

// Features are the offloads of the interface.
type Features struct {
	// Whether the kernel merges the segments of a flow before its stack sees them.
	GRO bool `yaml:"gro" default:"on" kernel:"ethtool -K gro"`
	// Whether the card verifies checksums of received packets; if not, the kernel does.
	RX bool `yaml:"rx" derived:"on, but off for lan966x, whose driver offers none" kernel:"ethtool -K rx"`
	// Whether GRO chains datagrams, and segments that are not for this host, for which no
	// socket asked. A socket takes the chain apart again.
	RXGROList bool `yaml:"rx-gro-list" default:"off" kernel:"ethtool -K rx-gro-list"`
	// Whether GRO merges datagrams for which no socket was found. As long as no socket asked
	// for merged datagrams, the kernel does not look for one.
	RXUDPGROForwarding bool `yaml:"rx-udp-gro-forwarding" default:"off" kernel:"ethtool -K rx-udp-gro-forwarding"`
}

// NAPI is how the kernel polls a card: settings of the interface, and since v6.13 of each of
// its NAPI instances, which are all alike here.
type NAPI struct {
	// The longest time that GRO holds packets after a poll, and the time after which a timer
	// polls instead of a deferred interrupt; 0: GRO holds none, and no interrupt is deferred.
	GROFlushTimeout unit.Duration `yaml:"gro_flush_timeout" default:"0s" max:"10s" bare:"ns" kernel:"/sys/class/net/IF/gro_flush_timeout"`
	// The number of polls after one with work that leave the interrupt masked, if there is a
	// gro_flush_timeout.
	DeferHardIRQs int `yaml:"napi_defer_hard_irqs" default:"0" min:"0" max:"2147483647" unit:"polls" kernel:"/sys/class/net/IF/napi_defer_hard_irqs"`
	// The time for which an epoll instance that prefers to poll keeps the interrupt masked
	// while its task handles events; 0: no longer than gro_flush_timeout. Set by netlink.
	IRQSuspendTimeout unit.Duration `yaml:"irq_suspend_timeout" default:"0s" max:"10s" bare:"ns" kernel:"netdev-genl napi-set irq-suspend-timeout"`
	// Whether each instance is polled by a thread of its own instead of the softirq, and
	// whether that thread polls without a pause.
	Threaded Threaded `yaml:"threaded" default:"disabled" kernel:"/sys/class/net/IF/threaded"`
	// The CPU on which all threads of the card run. Linux lets them run anywhere unless taskset
	// says otherwise; here they stay. Busy-polling threads of both directions share it in turns
	// of the scheduler.
	ThreadCPU int `yaml:"thread_cpu" derived:"that of irq.rx" min:"0" kernel:"taskset"`
}

// Threaded says who polls.
type Threaded string

// The ways to poll, by their names in netlink.
const (
	ThreadedDisabled Threaded = "disabled"
	ThreadedEnabled  Threaded = "enabled"
	ThreadedBusyPoll Threaded = "busy-poll"
)

// Values returns the ways that can be written.
func (Threaded) Values() []string {
	return []string{string(ThreadedDisabled), string(ThreadedEnabled), string(ThreadedBusyPoll)}
}

// IRQ says which CPU takes the interrupts.
type IRQ struct {
	// The CPU of the RX vector.
	RX int `yaml:"rx" default:"0" min:"0" kernel:"smp_affinity"`
	// The CPU of the TX vector. The driver lan966x has one vector for both directions.
	TX int `yaml:"tx" derived:"that of rx" min:"0" kernel:"smp_affinity"`
}

// PagePool is the recycling of receive pages.
type PagePool struct {
	// The size of the recycle ring; 0 stands for the default.
	Size int `yaml:"size" derived:"that of the RX ring" min:"0" max:"32768" why:"page_pool_init refuses such a ring" unit:"pages" kernel:"page_pool_params.pool_size"`
}

// Queues are the receive queues of an interface, which have one so far.
type Queues struct {
	// The first receive queue.
	RX0 RXQueue `yaml:"rx-0"`
}

// RXQueue says how the packets of a receive queue are spread over CPUs.
type RXQueue struct {
	// The CPUs that packets are spread over by their hash, as a hexadecimal mask in quotes; 0
	// leaves packets where they are.
	RPSCPUs CPUMask `yaml:"rps_cpus" default:"0" kernel:"queues/rx-N/rps_cpus"`
	// The number of flows that are followed to the CPUs of their readers; 0 turns that off.
	RPSFlowCnt int `yaml:"rps_flow_cnt" default:"0" min:"0" max:"536870912" unit:"entries" kernel:"queues/rx-N/rps_flow_cnt"`
}

// Tap is a tap device: an interface that programs and vhost write frames to.
type Tap struct {
	// Whether frames wait for a NAPI instance of the device.
	NAPI bool `yaml:"napi" default:"off" kernel:"IFF_NAPI"`
	// Whether the writer gives each frame to GRO itself.
	NAPIFrags bool `yaml:"napi_frags" default:"off" kernel:"IFF_NAPI_FRAGS"`
	// Whether that NAPI merges the segments of a flow.
	GRO bool `yaml:"gro" default:"on" kernel:"ethtool -K gro"`
	// The number of frames that may wait for the writer to say that no more follow; 0
	// delivers each at once.
	RXFrames int `yaml:"rx-frames" default:"0" min:"0" max:"64" unit:"frames" kernel:"ethtool -C rx-frames"`
	// How the kernel spreads what is written.
	Queues Queues `yaml:"queues" kernel:"/sys/class/net/IF/queues"`
}

// Veth is a veth pair, seen from its receiving end.
type Veth struct {
	// Whether the receiving end merges the segments of a flow.
	GRO bool `yaml:"gro" default:"off" kernel:"ethtool -K gro"`
	// Whether the sending end hands down large pieces of a stream. Only with gro on and this
	// off the receiving end uses a NAPI instance of its own instead of the backlog.
	SenderTSO bool `yaml:"sender_tso" default:"on" kernel:"ethtool -K tso"`
	// The CPU on which a queueing discipline of the sending end lets out the traffic whose nic is
	// this pair.
	CPU int `yaml:"cpu" default:"0" min:"0"`
	// How the kernel spreads what is received.
	Queues Queues `yaml:"queues" kernel:"/sys/class/net/IF/queues"`
}

// XDP is what the XDP program of an interface answers.
type XDP string

// The answers of an XDP program.
const (
	XDPPass XDP = "pass"
	XDPDrop XDP = "drop"
)

// Values returns the answers that can be written.
func (XDP) Values() []string { return []string{string(XDPPass), string(XDPDrop)} }
