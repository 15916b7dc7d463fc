"""The first code of a worker that a tool starts: closes itself in, then becomes the tool, which starts the worker.

    python watched.py TOOL ARGUMENT… python … boot.py ORDER

So the tool has no more rights than the worker that it watches: the same user, limits, filter and files. A tool that stayed root in there
could neither use the files of its worker nor share its own with it.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    """Does not return."""
    order = json.loads(sys.argv[-1])
    sys.path.append(order["package"])  # last, as in `boot`
    from workbench.judge.workers.boot import close_in

    close_in(order)
    if order.get("landlock"):
        # The folder around the package can't be listed any more, and so nothing imported from it: the package alone is put elsewhere.
        os.mkdir("package")  # noqa: PTH102 - no more imports than needed
        os.symlink(order["package"] + "/workbench", "package/workbench")  # noqa: PTH211
        order["package"] = order["directory"] + "/package"
    # What was done to this process holds for all that it starts. Its own end ends the tool; the worker is no child of the judge's.
    done = {"user": None, "landlock": None, "seccomp": None, "sandboxed": True}
    command = [*sys.argv[1:-1], json.dumps(order | done)]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
