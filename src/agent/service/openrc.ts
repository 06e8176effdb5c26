/**
 * Restarts a service that OpenRC supervises. Finds the name of the service from its supervisor, or from the init
 * scripts if there is no supervisor.
 */
import { constants } from 'node:fs';
import { open, readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { assertTrustedPath } from '../state/trusted-path.ts';
import type { Commands } from './commands.ts';
import type { SupervisorAccount } from './crash-story.ts';
import { valueOf } from './find-services.ts';
import { isSameProcess, type ProcessId } from './host.ts';
import { argumentsOf, findProcess, leadTo, variableOf } from './processes.ts';
import type { ServiceManager } from './service-manager.ts';
import { whyForeign } from './trusted-process.ts';

const SUPERVISOR = 'supervise-daemon';
/**
 * The directory in which OpenRC keeps a subdirectory for each service. The subdirectory has a file for each value of
 * the service.
 */
const OPTIONS = '/run/openrc/options';
const MOST_BYTES = 4_096;

/** Returns OpenRC as a service manager. The paths are parameters for tests. */
export function openRc(
  commands: Commands,
  initScripts = '/etc/init.d',
  options = OPTIONS,
): ServiceManager {
  return {
    async find(process, binary) {
      const supervised = serviceUnder(process.parent);
      const name = supervised ?? (await serviceFor(process, binary, initScripts));
      if (name === undefined) return undefined;
      const isAlive = isSameProcess(findProcess(process.pid), process);
      return {
        title: `OpenRC service ${name}`,
        // While the supervisor waits before it starts the next process, `rc-service restart` fails, because OpenRC
        // considers the service as running.
        isRestarting: !isAlive && supervised !== undefined,
        // Without --nodeps, OpenRC also stops the services that need this service, and the agent may be one of them.
        restart: async () => await commands.start('rc-service', '--nodeps', name, 'restart'),
        account: async () => await accountOf(join(options, name), process.parent),
      };
    },
  };
}

/**
 * Returns what the supervisor knows about the service. The supervisor writes its count of restarts to a file. The paths
 * of the log are on its command line.
 */
async function accountOf(options: string, supervisor: number): Promise<SupervisorAccount> {
  const count = Number(await readFile(join(options, 'start_count'), 'utf8').catch(() => ''));
  // Guard supervisor-log. Nobody else chooses the file that root reads.
  const args = whyForeign(supervisor) === undefined ? argumentsOf(supervisor) : [];
  const logs = await Promise.all(
    ['--stderr', '--stdout'].map(async (flag) => await lastLines(valueOf(args, [flag]))),
  );
  return {
    restarts: Number.isInteger(count) ? count : 0,
    log: logs.find((lines) => lines.length > 0),
  };
}

/**
 * Returns the name of the service. If the supervisor has stopped its restarts and ended, only the init script names the
 * binary.
 */
async function serviceFor(
  { parent }: ProcessId,
  binary: string,
  initScripts: string,
): Promise<string | undefined> {
  // Guard supervisor-gone. A process of another user is no supervisor.
  const isSupervised =
    findProcess(parent) !== undefined && (parent <= 1 || whyForeign(parent) === undefined);
  if (isSupervised) return undefined;
  for (const name of await readdir(initScripts).catch(() => [])) {
    const script = await readFile(join(initScripts, name), 'utf8').catch(() => '');
    // Only whole words are compared, so that `/usr/bin/k0s` does not match `/usr/bin/k0s-old`.
    const words = script.split(/[\s"'=;]+/).filter((word) => word.startsWith('/'));
    if (script.includes(SUPERVISOR) && (await leadTo(binary, words))) return name;
  }
  return undefined;
}

function serviceUnder(supervisor: number): string | undefined {
  // The supervisor may have ended, and another process may have its PID now.
  // Guard supervisor-name. Nobody else chooses the service that root restarts.
  if (whyForeign(supervisor) !== undefined) return undefined;
  const [program = '', name] = argumentsOf(supervisor);
  if (basename(program) !== SUPERVISOR) return undefined;
  return variableOf(supervisor, 'RC_SVCNAME') ?? name;
}

/**
 * Returns the last lines of the log. Returns no lines if users other than root can write the log or replace it by a
 * link.
 */
async function lastLines(path: string | undefined): Promise<string[]> {
  if (path === undefined) return [];
  try {
    // Guard log-path. Nobody else can replace the log by a link.
    await assertTrustedPath(path);
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const found = await file.stat();
    if (!found.isFile()) return [];
    const bytes = Buffer.alloc(MOST_BYTES);
    const { bytesRead } = await file.read(
      bytes,
      0,
      MOST_BYTES,
      Math.max(0, found.size - MOST_BYTES),
    );
    return bytes.toString('utf8', 0, bytesRead).split('\n').filter(Boolean).slice(-3);
  } catch {
    return [];
  }
}
