package index

// Queues returns how many kinds of claims wait: of one class and volume mode each.
func (w *Waiting) Queues() int { return len(w.queues) }

// Compared returns how many selectors a volume of these labels is compared with.
func (w *Waiting) Compared(labels map[string]string) (count int) {
	for _, queue := range w.queues {
		count += len(queue.odd)
		for key, value := range labels {
			count += len(queue.asking[label{key, value}])
		}
	}
	return count
}
