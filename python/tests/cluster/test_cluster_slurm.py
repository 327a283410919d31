"""The script that Slurm is given, and what the engine makes of its answers."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from stlf import InputError
from stlf.cluster import ClusterError, Division, Workers, conduct
from stlf.cluster.slurm import Slurm, array_script, ranges


def script(folder: Path, *sbatch: str, threads: int = 4) -> str:
    division = Division(Path("/opt/stlf"), Path("/lab/me/it's mine.toml"), folder / "100% mine", 16, threads=threads)
    workers = Workers(count=8, threads=threads, leash=division.work / "leash", sbatch=sbatch)
    return array_script(division.shard(5), workers)


def test_the_script_asks_for_what_the_shares_need(tmp_path: Path) -> None:
    lines = script(tmp_path, "--partition=long", "--comment=two words").splitlines()
    assert lines[0] == "#!/bin/bash"
    assert [line for line in lines if line.startswith("#SBATCH")] == [
        '#SBATCH --job-name="100% mine.shards"',
        "#SBATCH --cpus-per-task=4",
        f"#SBATCH --chdir={Path.cwd()}",
        f'#SBATCH --output="{tmp_path}/100%% mine.shards/%a-of-16.log"',
        "#SBATCH --open-mode=append",
        "#SBATCH --partition=long",
        '#SBATCH --comment="two words"',
    ]
    assert "export RAYON_NUM_THREADS=4" in lines


def test_the_guide_shows_the_script_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STLF_DATA", raising=False)
    guide = Path(__file__).parents[3] / "docs" / "clusters.md"
    me = Path("/lab/me")
    division = Division(me / "bin/stlf", me / "mine.toml", me / "runs/mine", 16, threads=4)
    text = array_script(division.shard(1), Workers(count=16, threads=4, leash=division.work / "leash"))
    shown = "".join(f"    {line}\n" for line in text.replace(str(Path.cwd()), str(me)).splitlines())
    assert shown in guide.read_text()


def test_the_script_is_bash_and_does_the_share_of_its_task(tmp_path: Path) -> None:
    text = script(tmp_path)
    subprocess.run(["bash", "-n"], input=text, text=True, check=True, timeout=600)
    (tmp_path / "100% mine.shards").mkdir()
    # Instead of stlf, a function that shows its words, one per line.
    show = "run() { printf '%s\\n' \"$@\"; return 7; }\n" + text.replace("/opt/stlf run", "run")
    done = subprocess.run(
        ["bash"],
        input=show,
        text=True,
        capture_output=True,
        timeout=600,
        env={**os.environ, "SLURM_ARRAY_TASK_ID": "12"},
    )
    own = f"{tmp_path}/100% mine.shards/12-of-16"
    assert done.stdout.splitlines() == ["/lab/me/it's mine.toml", "--to", own, "--shard", "12/16"]
    assert done.returncode == 7
    assert Path(f"{own}.code").read_text() == "7\n"


def test_an_option_of_several_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="several lines"):
        script(tmp_path, "--comment=x\nrm -r y")


def test_numbers_are_written_as_ranges() -> None:
    assert ranges([4]) == "4"
    assert ranges([9, 1, 2, 3, 8]) == "1-3,8-9"


FAKE = """\
#!/bin/bash
# A stlf that is killed together with its task the first time, and leaves a note of every attempt.
[ "$1" = merge ] && exit 0
while [ "$1" != --to ]; do shift; done
echo attempt >> "$2.attempts"
case $2 in *2-of-3) [ "$(wc -l < "$2.attempts")" = 1 ] && kill -9 $PPID $$ ;; esac
exit 0
"""


def test_a_task_that_vanishes_without_a_code_is_repeated(
    tmp_path: Path, stand_in_slurm: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in stand_in_slurm.items():
        monkeypatch.setenv(name, value)
    fake = tmp_path / "stlf"
    fake.write_text(FAKE)
    fake.chmod(0o755)
    division = Division(fake, Path("mine.toml"), tmp_path / "mine", shards=3)
    conduct(division, lambda workers: Slurm(workers, ask_every=0.1), workers=2)
    assert "shard 2 of 3 was lost (Slurm has it no more); again, 1 of 3" in capsys.readouterr().err
    attempts = [len((division.work / f"{k}-of-3.attempts").read_text().splitlines()) for k in (1, 2, 3)]
    assert attempts == [1, 2, 1]
    assert not (division.work / "slurm-jobs").exists()


def test_what_sbatch_refuses_is_told_in_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho 'sbatch: error: invalid partition specified: long' >&2; exit 1\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    division = Division(Path("/bin/true"), Path("mine.toml"), tmp_path / "mine", shards=1)
    with pytest.raises(ClusterError, match="invalid partition specified: long"):
        conduct(division, "slurm", sbatch=("--partition=long",))


def test_jobs_that_a_killed_command_left_are_cancelled_by_the_next(
    tmp_path: Path,
    stand_in_slurm: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    until: Callable[[str, Callable[[], object]], None],
) -> None:
    for name, value in stand_in_slurm.items():
        monkeypatch.setenv(name, value)
    division = Division(Path("/bin/sleep"), Path("mine.toml"), tmp_path / "mine", shards=1)
    division.work.mkdir()
    leash = division.work / "leash"
    shard = division.shard(1)
    first = Slurm(Workers(count=1, threads=1, leash=leash))
    first.start([replace(shard, command=("sleep", "600"))])
    queue = ["squeue"]
    assert subprocess.run(queue, capture_output=True, text=True, timeout=600).stdout == "1 1\n"
    Slurm(Workers(count=1, threads=1, leash=leash))
    # What is killed is gone a moment later.
    until(
        "the queue is empty",
        lambda: subprocess.run(queue, capture_output=True, text=True, timeout=600).stdout == "",
    )
