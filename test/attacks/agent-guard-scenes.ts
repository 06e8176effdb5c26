/** The parts of the attacks on the guards of the agent: files, processes and servers of an attacker. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import * as files from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, isAbsolute, join, relative } from 'node:path';
import type { FetchTools } from '../../src/agent/download/fetch.ts';
import { DEFAULT_TOOLS } from '../../src/util/tools.ts';

/** Resolves with true if the attack succeeded. */
export type Attack = (scene: Scene) => Promise<boolean>;

/** User and group `nobody`: no rights on this host. */
export const NOBODY = 65_534;

export const hashOf = (text: string | Buffer): string =>
  createHash('sha256').update(text).digest('hex');

/** Resolves with true if the work succeeds. */
export async function works(work: Promise<unknown>): Promise<boolean> {
  return await work.then(
    () => true,
    () => false,
  );
}

/** Resolves with true if one of the attempts succeeds. */
export async function any(attempts: Iterable<Promise<boolean>>): Promise<boolean> {
  return (await Promise.all(attempts)).includes(true);
}

export const TOOLS: FetchTools = {
  ...DEFAULT_TOOLS,
  files,
  environment: {},
  abort: new AbortController().signal,
};

export const LIMITS = { maxBytes: 1_000_000, reserveBytes: 0, totalMs: 60_000, stallMs: 60_000 };

/** A folder of root, with everything that an attack started. */
export class Scene implements AsyncDisposable {
  readonly directory: string;
  readonly #things = new AsyncDisposableStack();

  private constructor(directory: string) {
    this.directory = directory;
    this.#things.defer(async () => await files.rm(directory, { recursive: true, force: true }));
  }

  static async create(): Promise<Scene> {
    const directory = await files.mkdtemp(join(tmpdir(), 'refit-guard-'));
    await files.chmod(directory, 0o755);
    return new Scene(directory);
  }

  at(path: string): string {
    return join(this.directory, path);
  }

  /** Writes a file of root. Returns its path. */
  async put(path: string, text: string | Buffer = '', mode = 0o644): Promise<string> {
    const at = this.at(path);
    await files.mkdir(dirname(at), { recursive: true });
    await files.writeFile(at, text);
    await files.chmod(at, mode);
    return at;
  }

  async folder(path: string, mode = 0o755): Promise<string> {
    const at = this.at(path);
    await files.mkdir(at, { recursive: true });
    await files.chmod(at, mode);
    return at;
  }

  /** Starts a program. Resolves with its PID once the program runs. */
  async run(program: string, args: readonly string[], options: SpawnOptions = {}): Promise<number> {
    const child = spawn(program, args, { stdio: 'ignore', cwd: this.directory, ...options });
    this.#things.defer(async () => await end(child));
    await once(child, 'spawn');
    return child.pid ?? 0;
  }

  /** Starts a process that waits, with these arguments. Its program is the shell, or a copy of it at `program`. */
  async waiter(
    args: readonly string[],
    options: SpawnOptions & { readonly program?: string } = {},
  ): Promise<number> {
    const { program = '/bin/sh', ...more } = options;
    const script = args[0] ?? 'worker';
    const path = isAbsolute(script) ? relative(this.directory, script) : script;
    await this.put(path, 'while read -r _; do :; done\n', 0o755);
    return await this.run(program, args, { stdio: ['pipe', 'ignore', 'ignore'], ...more });
  }

  /** Serves HTTP on a port or on a socket. Returns the URL or the path. */
  async serve(answer: RequestListener, socket?: string, server?: Server): Promise<string> {
    const listening = server ?? createServer(answer);
    if (socket === undefined) listening.listen(0, '127.0.0.1');
    else listening.listen(socket);
    await once(listening, 'listening');
    this.#things.defer(async () => {
      listening.closeAllConnections();
      await new Promise((resolve) => listening.close(resolve));
    });
    return socket ?? `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#things.disposeAsync();
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
