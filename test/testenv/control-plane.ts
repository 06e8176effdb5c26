/** Gives tests access to the real control plane that their file has borrowed, in any worker process. */
import { once } from 'node:events';
import { appendFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { expect, inject } from 'vitest';
import { installDefinitions } from '../../sandbox/cluster/objects.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { systemClock } from '../../src/util/clock.ts';
import { applyManifest } from '../../tools/controlplane/apply.ts';
import { documentedRoles } from '../../tools/controlplane/control-plane.ts';
import * as credentials from '../../tools/controlplane/kubeconfig.ts';
import { kubectl } from '../../tools/controlplane/kubectl.ts';
import type { RunResult } from '../../tools/controlplane/run.ts';

export type { User } from '../../tools/controlplane/kubeconfig.ts';

/** The data that a test file gets. The files for credentials are below `directory`. */
export interface ControlPlaneAccess extends credentials.Place {
  readonly port: number;
  /** In PEM. */
  readonly caCertificate: string;
  /** One JSON object for each request that was answered (audit.k8s.io/v1 Event). */
  readonly auditLog: string;
}

/** The answer of the pool: a control plane, or the reason why none could be started. */
export type Loan = { readonly access: ControlPlaneAccess } | { readonly failure: string };

export interface RecordedLoan {
  /** Path of the test file. */
  readonly file: string;
  readonly auditLog: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    /** The address of the pool; undefined if tests are only listed. */
    controlPlanes: string | undefined;
    /** File with one `RecordedLoan` in each line. */
    loans: string;
  }
}

/**
 * The loopback addresses in the server certificate in addition to 127.0.0.1. A proxy at each address can act as one
 * controller.
 */
export const CONTROLLER_ADDRESSES: readonly string[] = Array.from(
  { length: 9 },
  (_, i) => `127.0.0.${11 + i}`,
);

/**
 * Environment variables for programs written in Go. Several of these programs run on few cores, but there is enough
 * memory. One thread per program and a less frequent garbage collection save a fifth of all CPU time.
 */
export const SPARING = { GOMAXPROCS: '1', GOGC: '400' } as const;

let borrowed: ControlPlaneAccess | undefined;

/**
 * Waits for a control plane that no other process uses, unless this process has one already. Records that the next file
 * uses it.
 */
export async function borrowControlPlane(): Promise<void> {
  const pool = inject('controlPlanes');
  if (pool === undefined) return;
  borrowed ??= await borrow(pool);
  const recorded: RecordedLoan = {
    file: expect.getState().testPath ?? '',
    auditLog: borrowed.auditLog,
  };
  await appendFile(inject('loans'), `${JSON.stringify(recorded)}\n`);
}

/** The loan ends with this process. */
async function borrow(pool: string): Promise<ControlPlaneAccess> {
  const connection = connect(pool);
  const [line] = (await once(createInterface({ input: connection }), 'line')) as [string];
  connection.unref();
  const loan = JSON.parse(line) as Loan;
  if ('failure' in loan) throw new Error(loan.failure);
  return loan.access;
}

export function controlPlane(): ControlPlaneAccess {
  if (borrowed === undefined)
    throw new Error('this test project has no control plane: see vitest.config.ts');
  return borrowed;
}

/** Path of a kubeconfig for `user`; a control node gets its role on first use. */
export async function kubeconfigFor(user: credentials.User): Promise<string> {
  return await credentials.kubeconfigFor(controlPlane(), user);
}

/** Path of a kubeconfig whose client certificate expired an hour ago. */
export async function expiredKubeconfig(): Promise<string> {
  return await credentials.expiredKubeconfigFor(controlPlane());
}

/**
 * The arguments with which kubectl applies its input, for tests that do not depend on client-side or server-side apply.
 * With client-side apply, kubectl reads the schema of all kinds each time. That takes kubectl 400 ms of CPU instead of
 * 90 ms, and the API server needs as long to write the schema after a new definition.
 */
export const ON_SERVER = ['apply', '--server-side', '--force-conflicts', '-f', '-'];

/** Runs kubectl as `user`. A refusal by the API server is returned, not thrown. */
export async function kubectlAs(
  user: credentials.User,
  args: readonly string[],
  input?: string,
): Promise<RunResult> {
  return await kubectl(controlPlane().kubectl, await kubeconfigFor(user), args, input);
}

/** Applies YAML or JSON text as administrator. */
export async function apply(manifest: string): Promise<void> {
  await applyManifest(await kubeconfigFor('admin'), manifest);
}

/**
 * Waits until the API server serves all kinds of `deploy/crds/`. Applies them as administrator if it does not serve
 * them yet, which is rare.
 */
export async function installKinds(): Promise<void> {
  using client = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await installDefinitions(client, systemClock);
}

/**
 * Restores the documented roles for the next file on this control plane. For files that removed roles or their
 * namespaces.
 */
export async function restoreRoles(): Promise<void> {
  await apply(await documentedRoles());
}
