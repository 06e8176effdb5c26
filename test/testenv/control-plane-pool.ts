/** Starts real control planes as test processes ask for them, and lends each one to one process at a time. */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  buildControlPlane,
  type ControlPlane,
  startControlPlane,
} from '../../tools/controlplane/control-plane.ts';
import { run } from '../../tools/controlplane/run.ts';
import { buildTool } from './build-tool.ts';
import {
  CONTROLLER_ADDRESSES,
  type ControlPlaneAccess,
  type Loan,
  SPARING,
} from './control-plane.ts';

const OPTIONS = {
  components: ['kube-controller-manager', 'kube-scheduler', 'kwok'],
  addresses: CONTROLLER_ADDRESSES,
  audit: true,
  environment: SPARING,
} as const;

export class ControlPlanePool {
  /**
   * The address at which test processes connect to borrow a control plane: a Linux abstract socket. A loan ends with
   * its connection.
   */
  readonly address = `\0refit-control-planes-${randomUUID()}`;
  /** A file to which each borrower adds a line for each of its test files. The audit logs that it names stay until the pool stops. */
  readonly loans = join(tmpdir(), `refit-loans-${randomUUID()}.jsonl`);
  readonly #size: number;
  readonly #server = createServer((borrower) => this.#add(borrower));
  readonly #started: Promise<ControlPlane>[] = [];
  readonly #free: ControlPlane[] = [];
  readonly #borrowers: Socket[] = [];
  readonly #stopped = new AbortController();
  #failure: string | undefined;

  /**
   * Starts at most `size` control planes. Their programs are built immediately, while tests that need no control plane
   * are running.
   */
  constructor(size: number) {
    this.#size = size;
    this.#server.listen(this.address);
    const { signal: abort } = this.#stopped;
    buildControlPlane({ ...OPTIONS, abort }).then(
      // The other tools are built after the programs that every file needs. A file that needs a tool waits for it, and
      // reports the error if its build failed.
      () => void buildTools(abort).catch(() => undefined),
      (error: unknown) => this.#fail(error),
    );
  }

  /** Call it when all tests have ended. */
  async stop(): Promise<void> {
    this.#server.close();
    this.#stopped.abort();
    for (const result of await Promise.allSettled(this.#started))
      if (result.status === 'fulfilled') await result.value.stop();
    await rm(this.loans, { force: true });
  }

  #add(borrower: Socket): void {
    borrower.on('error', () => borrower.destroy());
    this.#borrowers.push(borrower);
    if (this.#free.length === 0 && this.#started.length < this.#size) this.#start();
    this.#lend();
  }

  #start(): void {
    const starting = start(this.#stopped.signal);
    this.#started.push(starting);
    starting.then(
      (controlPlane) => this.#release(controlPlane),
      (error: unknown) => this.#fail(error),
    );
  }

  #fail(error: unknown): void {
    this.#failure = String(error);
    this.#lend();
  }

  #release(controlPlane: ControlPlane): void {
    this.#free.push(controlPlane);
    this.#lend();
  }

  #lend(): void {
    for (const borrower of this.#borrowers.splice(0)) {
      const controlPlane = borrower.destroyed ? undefined : this.#free.pop();
      if (controlPlane !== undefined) {
        borrower.once('close', () => this.#release(controlPlane));
        send(borrower, { access: accessTo(controlPlane) });
      } else if (this.#failure !== undefined) send(borrower, { failure: this.#failure });
      else if (!borrower.destroyed) this.#borrowers.push(borrower);
    }
  }
}

async function buildTools(abort: AbortSignal): Promise<void> {
  await buildTool('etcdutl', abort);
  await buildTool('helm', abort);
}

async function start(abort: AbortSignal): Promise<ControlPlane> {
  const controlPlane = await startControlPlane({ ...OPTIONS, abort });
  const { url, kubectl } = controlPlane;
  const { stdout } = await run(kubectl, [
    `--kubeconfig=${await controlPlane.kubeconfig('admin')}`,
    'version',
  ]);
  process.stderr.write(`kube-apiserver ${/Server Version: (.*)/.exec(stdout)?.[1]} at ${url}\n`);
  return controlPlane;
}

function accessTo({
  url,
  port,
  directory,
  kubectl,
  caCertificate,
  auditLog = '',
}: ControlPlane): ControlPlaneAccess {
  return { url, port, directory, kubectl, caCertificate, auditLog };
}

function send(borrower: Socket, loan: Loan): void {
  borrower.write(`${JSON.stringify(loan)}\n`);
}
