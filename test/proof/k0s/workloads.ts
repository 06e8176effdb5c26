/** Pods for the scenes. They run from an image that every worker has. */
import type { Cluster } from './cluster/cluster.ts';
import { SHELL } from './parts/images.ts';

const container = (command: string) => ({
  name: 'shell',
  image: SHELL,
  imagePullPolicy: 'Never',
  command: ['sh', '-c', command],
});

interface PodOptions {
  readonly name: string;
  readonly node: string;
  /** A command of sh. By default the pod lasts. */
  readonly command?: string;
}

/** Returns a pod of its own on one node. */
export const pod = ({ name, node, command = 'sleep 100000' }: PodOptions): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default', labels: { app: name } },
  spec: {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 1,
    nodeSelector: { 'kubernetes.io/hostname': node },
    containers: [container(command)],
  },
});

/** Returns a Deployment whose pods prefer one node, and move when they must. */
export const deployment = (name: string, node: string, replicas = 1): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace: 'default' },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [container('sleep 100000')],
        affinity: {
          nodeAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              {
                weight: 100,
                preference: {
                  matchExpressions: [
                    { key: 'kubernetes.io/hostname', operator: 'In', values: [node] },
                  ],
                },
              },
            ],
          },
        },
      },
    },
  },
});

/** Returns a budget that keeps this many pods of an app. */
export const budget = (app: string, minAvailable: number): object => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: app, namespace: 'default' },
  spec: { minAvailable, selector: { matchLabels: { app } } },
});

/** Returns the template of a Job of a hook. */
export const hookTemplate = (command: string): object => ({
  spec: { containers: [container(command)] },
});

export interface RunningPod {
  readonly name: string;
  readonly node: string;
  readonly phase: string;
  /** The running container, which changes when it is started again. */
  readonly container: string;
}

/** Resolves with the pods of an app. */
export async function podsOf(
  cluster: Cluster,
  selector: string,
  namespace = 'default',
): Promise<RunningPod[]> {
  const { stdout } = await cluster.kubectl(
    'get',
    'pods',
    '-n',
    namespace,
    '-l',
    selector,
    '-o',
    'json',
  );
  const { items } = JSON.parse(stdout) as {
    items: readonly {
      readonly metadata: { readonly name: string };
      readonly spec: { readonly nodeName?: string };
      readonly status: {
        readonly phase: string;
        readonly containerStatuses?: readonly { readonly containerID?: string }[];
      };
    }[];
  };
  return items.map(({ metadata, spec, status }) => ({
    name: metadata.name,
    node: spec.nodeName ?? '',
    phase: status.phase,
    container: status.containerStatuses?.[0]?.containerID ?? '',
  }));
}
