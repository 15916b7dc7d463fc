"""Workers as the judge holds them: what they hold is freed once, whoever closes them."""

import threading


def test_a_worker_closed_from_many_threads_frees_each_descriptor_once(host_judge):
    """A pool that closes meets workers that are just being buried."""
    faults: list[BaseException] = []
    pool = host_judge.context.pool
    for _ in range(4):
        worker = pool.take("device")
        together = threading.Barrier(8)

        def close(worker=worker, together=together):
            together.wait()
            try:
                worker.close()
            except BaseException as error:  # a test's own thread: what it raises would be lost
                faults.append(error)

        threads = [threading.Thread(target=close) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pool.discard(worker)
    assert not faults
