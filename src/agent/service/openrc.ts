/** Restarts a service that OpenRC supervises. Finds its name from the supervisor, else from the init scripts. */
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Commands } from './commands.ts';
import { isSameProcess, type ProcessId } from './host.ts';
import { argumentsOf, findProcess, variableOf } from './processes.ts';
import type { ManagedService, ServiceManager } from './service-manager.ts';

const SUPERVISOR = 'supervise-daemon';
const INIT_SCRIPTS = '/etc/init.d';

export class OpenRc implements ServiceManager {
  readonly #commands: Commands;
  readonly #initScripts: string;

  constructor(commands: Commands, initScripts = INIT_SCRIPTS) {
    this.#commands = commands;
    this.#initScripts = initScripts;
  }

  async find(process: ProcessId, binary: string): Promise<ManagedService | undefined> {
    const supervised = await serviceUnder(process.parent);
    const name = supervised ?? (await this.#serviceFor(process, binary));
    if (name === undefined) return undefined;
    const isAlive = isSameProcess(await findProcess(process.pid), process);
    return {
      title: `OpenRC service ${name}`,
      // While the supervisor waits between two processes, `rc-service restart` fails: it finds the service running.
      isRestarting: !isAlive && supervised !== undefined,
      // Without --nodeps services that need this one stop too, and the agent may be one of them.
      restart: async () => await this.#commands.start('rc-service', '--nodeps', name, 'restart'),
    };
  }

  /** After the supervisor has given up, only the init script names the binary. */
  async #serviceFor(process: ProcessId, binary: string): Promise<string | undefined> {
    if ((await findProcess(process.parent)) !== undefined) return undefined;
    for (const name of await readdir(this.#initScripts).catch(() => [])) {
      const script = await readFile(join(this.#initScripts, name), 'utf8').catch(() => '');
      if (script.includes(SUPERVISOR) && namesFile(script, binary)) return name;
    }
    return undefined;
  }
}

async function serviceUnder(supervisor: number): Promise<string | undefined> {
  const [program = '', name] = await argumentsOf(supervisor);
  if (basename(program) !== SUPERVISOR) return undefined;
  return (await variableOf(supervisor, 'RC_SVCNAME')) ?? name;
}

/** As a whole word: `/usr/bin/k0s` does not match `/usr/bin/k0s-old`. */
function namesFile(script: string, path: string): boolean {
  return script.split(/[\s"'=;]+/).includes(path);
}
