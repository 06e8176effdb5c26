/** Owns the components that are clients of the API server: who each is to it, how it starts, when it is ready. */
import { join } from 'node:path';
import { systemClock } from '../../src/util/clock.ts';
import { controllerManagerArguments, kwokArguments, schedulerArguments } from './arguments.ts';
import { type Subject, validFrom } from './certs.ts';
import { type Place, writeKubeconfig } from './kubeconfig.ts';
import { freePort } from './ports.ts';
import type { Probe } from './probe.ts';
import { type Process, startProcess } from './process.ts';

export type ClientComponent = 'kube-controller-manager' | 'kube-scheduler' | 'kwok';

interface Client {
  readonly subject: Subject;
  readonly args: (directory: string, kubeconfig: string, port: number) => string[];
  /** URLs that all answer 200 once it is ready. */
  readonly ready: (port: number, apiServer: string) => string[];
}

const CLIENTS: Readonly<Record<ClientComponent, Client>> = {
  'kube-controller-manager': {
    subject: { commonName: 'system:kube-controller-manager' },
    args: controllerManagerArguments,
    // Without its service account a namespace refuses every pod.
    ready: (port, apiServer) => [
      `https://127.0.0.1:${port}/healthz`,
      `${apiServer}/api/v1/namespaces/default/serviceaccounts/default`,
    ],
  },
  'kube-scheduler': {
    subject: { commonName: 'system:kube-scheduler' },
    args: schedulerArguments,
    ready: (port) => [`https://127.0.0.1:${port}/readyz`],
  },
  kwok: {
    // It plays every kubelet at once, which no role for a single node allows.
    subject: { commonName: 'kwok', organization: 'system:masters' },
    args: (_directory, kubeconfig, port) => kwokArguments(kubeconfig, port),
    ready: (port) => [`http://127.0.0.1:${port}/healthz`],
  },
};

/** Resolves when the component is ready. Throws REFIT_TESTENV where it is not in time. */
export async function startClientComponent(
  name: ClientComponent,
  command: string,
  place: Place,
  probe: Probe,
  signal?: AbortSignal,
): Promise<Process> {
  const { subject, args, ready } = CLIENTS[name];
  const { directory, url } = place;
  const port = await freePort();
  const path = join(directory, 'kubeconfigs', `${name}.yaml`);
  const kubeconfig = await writeKubeconfig(place, path, subject, validFrom(systemClock.now()));
  return await startProcess({
    name,
    command,
    args: args(directory, kubeconfig, port),
    directory,
    ready: async () => (await Promise.all(ready(port, url).map(probe))).every(Boolean),
    clock: systemClock,
    signal,
  });
}
