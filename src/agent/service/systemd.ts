/** Restarts a service that systemd runs. Finds its unit from the process, or else from the binary. */
import type { Commands } from './commands.ts';
import type { SupervisorAccount } from './crash-story.ts';
import { isSameProcess, type ProcessId } from './host.ts';
import { findProcess, kernelText, leadTo } from './processes.ts';
import type { ServiceManager } from './service-manager.ts';

export interface Unit {
  readonly id: string;
  /** The PID of the main process; 0 if no main process runs. */
  readonly mainPid: number;
  readonly activeState: string;
  /** The time of the last change of the state, in microseconds since the boot. */
  readonly changedAt: number;
  /** The command lines of the unit, as systemd prints them. */
  readonly execStart: string;
}

const PROPERTIES = '--property=Id,MainPID,ActiveState,ExecStart,StateChangeTimestampMonotonic';

/** Matches the path of a file that the unit starts as k0s, directly or through a shell or an interpreter. */
const STARTED_AS_K0S = /(\/[^\s;"']+)(?: -\S+)* (?:controller|server|worker)\s/g;

/** Returns systemd as a service manager. `cgroupOf` is a parameter for tests. */
export function systemd(commands: Commands, cgroupOf = cgroupNow): ServiceManager {
  /** The name of the unit that ran the service last; undefined if none is known. */
  let last: string | undefined;
  return {
    async find(process, binary) {
      const isAlive = isSameProcess(findProcess(process.pid), process);
      const unit = await (isAlive
        ? unitOf(process, binary, commands, cgroupOf)
        : unitFor(binary, commands, last));
      if (unit === undefined) return undefined;
      last = unit.id;
      return {
        title: `systemd unit ${unit.id}`,
        isRestarting: !isAlive && unit.mainPid !== 0,
        restart: async () => await restart(unit, commands),
        account: async (since) => await accountOf(unit, since, commands),
      };
    },
  };
}

/**
 * Returns the unit of a running process. The cgroup also contains children of the service. So the main process of the
 * unit must be this process, or it must be the parent of this process and the unit must name the binary.
 */
async function unitOf(
  { pid, parent }: ProcessId,
  binary: string,
  { ask }: Commands,
  cgroupOf: typeof cgroupNow,
): Promise<Unit | undefined> {
  const name = unitNameIn(cgroupOf(pid));
  if (name === undefined) return undefined;
  const units = parseUnits(await ask('systemctl', 'show', PROPERTIES, name));
  const unit = units.find(({ mainPid }) => mainPid === pid || (mainPid === parent && mainPid > 1));
  // Guard unit-process. The agent restarts only the unit of the service.
  return unit?.mainPid === pid || (unit && (await names(unit, /(\/[^\s;"']+)/g, binary)))
    ? unit
    : undefined;
}

/**
 * Returns the unit of a process that has ended. This is the unit that last ran the service, or a unit that starts the
 * file as k0s. Other units may use the same file for another purpose.
 */
async function unitFor(
  binary: string,
  { ask }: Commands,
  last: string | undefined,
): Promise<Unit | undefined> {
  const units = parseUnits(await ask('systemctl', 'show', PROPERTIES, '*.service'));
  // There may be an older unit for another role that was never started or that failed long ago. So the unit whose state
  // changed last comes first.
  const newestFirst = units.toSorted((a, b) => b.changedAt - a.changedAt);
  // The unit that last ran the service is accepted without a match, because it may start a script and does not always
  // name the file.
  for (const unit of newestFirst)
    if (unit.id === last || (await names(unit, STARTED_AS_K0S, binary))) return unit;
  return undefined;
}

/**
 * Restarts the unit. It uses `restart`, because `start` would wait until a pending RestartSec has passed. systemd
 * completes the restart even if KillMode ends the agent as well.
 */
async function restart({ id, activeState }: Unit, { ask }: Commands): Promise<void> {
  if (activeState === 'failed') await ask('systemctl', 'reset-failed', id);
  // With --no-block the command does not wait. The agent itself checks whether the service runs again.
  await ask('systemctl', 'restart', '--no-block', id);
}

/**
 * Returns what systemd knows about the service. systemd sets its count of automatic restarts to 0 at each requested
 * restart.
 */
async function accountOf(
  { id }: Unit,
  since: number,
  { ask }: Commands,
): Promise<SupervisorAccount> {
  const query = [
    '--lines=3',
    '--output=cat',
    '--no-pager',
    '--quiet',
    `--since=@${Math.floor(since / 1000)}`,
  ];
  const [shown, log] = await Promise.all([
    ask('systemctl', 'show', '--property=NRestarts,ExecMainCode,ExecMainStatus', id),
    // The query selects only log lines of the service's own processes. `--unit` would add log lines of systemd.
    ask('journalctl', ...query, `_SYSTEMD_UNIT=${id}`).catch(() => ''),
  ]);
  const fields = fieldsOf(shown);
  return {
    restarts: Number(fields.get('NRestarts')) || 0,
    end: endOf(fields),
    log: log.split('\n'),
  };
}

/**
 * Returns how the main process ended, from `systemctl show`. The code CLD_EXITED of waitid(2) comes with an exit code,
 * other codes with a signal. The code is 0 while the process runs.
 */
function endOf(fields: ReadonlyMap<string, string>): string | undefined {
  const code = Number(fields.get('ExecMainCode'));
  const status = fields.get('ExecMainStatus');
  if (!(code > 0)) return undefined;
  return code === 1 ? `exit code ${status}` : `signal ${status}`;
}

async function names({ execStart }: Unit, pattern: RegExp, binary: string): Promise<boolean> {
  const paths = execStart.matchAll(pattern).map(([, path = '']) => path);
  return await leadTo(binary, paths);
}

/**
 * Returns the innermost unit in proc_pid_cgroup(5). With cgroup v1 it comes from the hierarchy of systemd, otherwise
 * from the hierarchy of cgroup v2.
 */
export function unitNameIn(cgroup: string): string | undefined {
  const lines = cgroup.split('\n');
  const own = [
    lines.find((line) => line.includes(':name=systemd:')),
    lines.find((line) => line.startsWith('0::')),
  ];
  const units = own.map((line) =>
    line?.split('/').findLast((segment) => segment.endsWith('.service')),
  );
  return units.find((unit) => unit !== undefined);
}

/** Parses blocks of `Key=value` lines, with an empty line between units. */
export function parseUnits(text: string): Unit[] {
  return text.split(/\n\n+/).flatMap((block) => {
    const fields = fieldsOf(block);
    const id = fields.get('Id');
    if (!id) return [];
    const mainPid = Number(fields.get('MainPID'));
    const activeState = fields.get('ActiveState') ?? '';
    const changedAt = Number(fields.get('StateChangeTimestampMonotonic')) || 0;
    return [{ id, mainPid, activeState, changedAt, execStart: fields.get('ExecStart') ?? '' }];
  });
}

function fieldsOf(block: string): Map<string, string> {
  return new Map(
    block.split('\n').map((line) => [line.split('=')[0] ?? '', line.slice(line.indexOf('=') + 1)]),
  );
}

const cgroupNow = (pid: number): string => kernelText(`/proc/${pid}/cgroup`);
