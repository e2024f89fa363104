package link

// queue is a FIFO of values in a ring that doubles when it is full, so that a link
// in a steady state allocates nothing.
type queue[T any] struct {
	buf  []T // a power of two long, or empty
	head uint64
	tail uint64
}

func (q *queue[T]) len() int { return int(q.tail - q.head) }

// front returns the oldest value; it stays where it is until pop.
func (q *queue[T]) front() *T { return &q.buf[q.head&uint64(len(q.buf)-1)] }

// push returns the place of a new value, for the caller to fill in.
func (q *queue[T]) push() *T {
	if q.len() == len(q.buf) {
		q.grow()
	}
	slot := &q.buf[q.tail&uint64(len(q.buf)-1)]
	q.tail++
	return slot
}

func (q *queue[T]) pop() { q.head++ }

func (q *queue[T]) grow() {
	bigger := make([]T, max(16, 2*len(q.buf)))
	n := 0
	for i := q.head; i != q.tail; i++ {
		bigger[n] = q.buf[i&uint64(len(q.buf)-1)]
		n++
	}
	q.buf, q.head, q.tail = bigger, 0, uint64(n)
}
