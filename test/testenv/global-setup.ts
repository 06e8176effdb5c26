/** Owns the one real control plane of a test run: started before the first test of any project that asks, stopped after the last. */
import type { TestProject } from 'vitest/node';
import { type ControlPlane, startControlPlane } from '../../tools/controlplane/control-plane.ts';
import { run } from '../../tools/controlplane/run.ts';
import { CONTROLLER_ADDRESSES, type ControlPlaneAccess } from './control-plane.ts';

interface Shared {
  projects: number;
  readonly access: Promise<[ControlPlane, ControlPlaneAccess]>;
}

/** Vitest loads this file anew for each project; what they share hangs on the process. */
const KEY = Symbol.for('refit.test.control-plane');
const holder = globalThis as typeof globalThis & { [KEY]?: Shared };

export async function setup(project: TestProject): Promise<void> {
  const shared = (holder[KEY] ??= { projects: 0, access: start() });
  shared.projects += 1;
  const [, access] = await shared.access;
  project.provide('controlPlane', access);
}

export async function teardown(): Promise<void> {
  const shared = holder[KEY];
  if (shared === undefined) return;
  shared.projects -= 1;
  if (shared.projects > 0) return;
  delete holder[KEY];
  const [controlPlane] = await shared.access;
  await controlPlane.stop();
}

async function start(): Promise<[ControlPlane, ControlPlaneAccess]> {
  const controlPlane = await startControlPlane({
    components: ['kube-controller-manager', 'kube-scheduler', 'kwok'],
    addresses: CONTROLLER_ADDRESSES,
    audit: true,
  });
  const { url, port, directory, kubectl, caCertificate, auditLog = '' } = controlPlane;
  const { stdout } = await run(kubectl, [`--kubeconfig=${await controlPlane.kubeconfig('admin')}`, 'version']);
  process.stderr.write(`kube-apiserver ${/Server Version: (.*)/.exec(stdout)?.[1]} at ${url}\n`);
  return [controlPlane, { url, port, directory, kubectl, caCertificate, auditLog }];
}
