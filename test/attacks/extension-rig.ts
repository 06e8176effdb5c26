/**
 * The parts that all attacks on the hooks use: a real `refit capi-extension` that requires client certificates, and raw
 * connections.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { vi } from 'vitest';
import { callHook } from '../../sandbox/cluster/hook-caller.ts';
import { type Extension, prepareExtension } from '../../sandbox/cluster/hook-extension.ts';
import { REFIT } from '../../sandbox/refit.ts';
import { startMemoryCluster } from '../agent/memory-cluster.ts';

const PATIENT = join(import.meta.dirname, 'patient-extension.ts');

export class ExtensionRig implements AsyncDisposable {
  readonly extension: Extension;
  /** The log of the process, as lines of JSON. */
  log = '';
  readonly #child: ChildProcess;
  readonly #stack: AsyncDisposableStack;
  readonly #sockets: TLSSocket[] = [];

  private constructor(extension: Extension, child: ChildProcess, stack: AsyncDisposableStack) {
    this.extension = extension;
    this.#child = child;
    this.#stack = stack;
    child.stderr?.on('data', (chunk: Buffer) => {
      this.log += chunk.toString();
    });
  }

  /**
   * Resolves when a manager can call the hooks. With `isPatient`, runs only the server of the hooks, which ends no slow
   * connection.
   */
  static async start({ isPatient = false, more = [] as string[] } = {}): Promise<ExtensionRig> {
    const stack = new AsyncDisposableStack();
    const directory = await mkdtemp(join(tmpdir(), 'refit-hooks-'));
    stack.defer(async () => await rm(directory, { recursive: true }));
    const cluster = await startMemoryCluster();
    stack.defer(async () => await cluster.stop());
    const extension = await prepareExtension({
      cluster: {
        downloads: { url: 'http://127.0.0.1:9' },
        startLeading: async () => await Promise.reject(new Error('not used')),
      },
      directory,
      kubeconfig: cluster.kubeconfig,
    });
    const address = new URL(extension.url).host;
    const program = isPatient
      ? [PATIENT, address, join(directory, 'hooks')]
      : [REFIT, ...extension.commandLine, ...more];
    const child = spawn(process.execPath, program, {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const rig = new ExtensionRig(extension, child, stack);
    await vi.waitFor(async () => await rig.callAsManager(), { timeout: 60_000, interval: 200 });
    return rig;
  }

  async callAsManager(): Promise<void> {
    const { url, authority, client } = this.extension;
    await callHook({ url, authority, client, protocol: 'http/1.1' }, 'Discovery', {});
  }

  /** Kilobytes of memory of the process. */
  async memory(): Promise<number> {
    const status = await readFile(`/proc/${this.#child.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]);
  }

  /** A TLS connection with a manager's certificate, or other options. */
  connect(options: ConnectionOptions = {}): TLSSocket {
    const { hostname, port } = new URL(this.extension.url);
    const { certificate: cert, key } = this.extension.client;
    const socket = connect({
      host: hostname,
      port: Number(port),
      ca: this.extension.authority,
      cert,
      key,
      ...options,
    });
    // The tests expect that the server ends connections, so errors are no failure.
    socket.on('error', () => undefined);
    this.#sockets.push(socket);
    return socket;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    if (this.#child.exitCode === null) {
      const gone = once(this.#child, 'exit');
      this.#child.kill('SIGKILL');
      await gone;
    }
    await this.#stack.disposeAsync();
  }
}
