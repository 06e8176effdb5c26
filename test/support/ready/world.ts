/** Makes a context for the checks of `refit ready` from objects, without an API server. */
import { apiVersionOf, type KubeObject, type Resource } from '../../../src/kube/resources.ts';
import { parseLabelSelector } from '../../../src/kube/selectors.ts';
import {
  type Asking,
  answer,
  type ListChoices,
  type ReadResult,
  unknown,
} from '../../../src/ready/asking.ts';
import type { ReadyContext } from '../../../src/ready/context.ts';

/** What the API server of a test has, and what it refuses. */
export interface ReadyWorld {
  readonly objects?: readonly object[];
  /** The kinds that the user may not list. */
  readonly forbidden?: readonly string[];
  /** The answers to paths such as `/metrics`. */
  readonly texts?: Readonly<Record<string, string>>;
  readonly to?: string;
  readonly readsHelmReleases?: boolean;
  readonly dialects?: ReadyContext['dialects'];
  readonly policyChecks?: ReadyContext['policyChecks'];
  readonly groundChecks?: ReadyContext['groundChecks'];
  readonly askCheck?: ReadyContext['askCheck'];
  /** The answers of each API server to `/version` and `/metrics`. */
  readonly servers?: readonly Readonly<Record<string, string>>[];
}

const VERSION = JSON.stringify({ gitVersion: 'v1.36.3' });
export const NOW = Date.parse('2026-11-30T12:00:00Z');

function askingFrom({ objects = [], forbidden = [], texts = {} }: ReadyWorld): Asking {
  const all = objects as readonly KubeObject[];
  const of = (resource: Resource, namespace?: string) =>
    all.filter(
      (each) =>
        each.kind === resource.kind &&
        each.apiVersion === apiVersionOf(resource) &&
        (namespace === undefined || each.metadata.namespace === namespace),
    );
  return {
    async list<T extends KubeObject>(resource: Resource<T>, choices: ListChoices<T> = {}) {
      const { namespace, labelSelector = '', slim = (object: T): T => object } = choices;
      const isSelected = parseLabelSelector(labelSelector);
      const found: ReadResult<readonly T[]> = forbidden.includes(resource.kind)
        ? unknown(`you may not read ${resource.plural}`)
        : answer((of(resource, namespace) as unknown as readonly T[]).filter(isSelected).map(slim));
      return await Promise.resolve(found);
    },
    async get<T extends KubeObject>(resource: Resource<T>, name: string, namespace?: string) {
      const found: ReadResult<T | undefined> = forbidden.includes(resource.kind)
        ? unknown(`you may not read ${resource.kind} ${name}`)
        : answer(
            of(resource, namespace).find(({ metadata }) => metadata.name === name) as T | undefined,
          );
      return await Promise.resolve(found);
    },
    allows: async () => await Promise.resolve(answer(true)),
    text: async (path) => await Promise.resolve(answer(texts[path])),
  };
}

export function readyContext(world: ReadyWorld = {}): ReadyContext {
  const { servers = [{ '/version': VERSION, '/metrics': '' }] } = world;
  return {
    ...askingFrom(world),
    to: world.to ?? 'v1.37.0',
    now: NOW,
    readsHelmReleases: world.readsHelmReleases ?? false,
    dialects: world.dialects ?? [],
    askServers: async (path) =>
      await Promise.resolve(
        servers.map((texts, index) => {
          const text = texts[path];
          return {
            server: `10.0.0.${index + 1}`,
            answer: text === undefined ? unknown('you may not read this path') : answer(text),
          };
        }),
      ),
    policyChecks: world.policyChecks ?? answer([]),
    groundChecks: world.groundChecks ?? [],
    askCheck: world.askCheck ?? (async () => await Promise.reject(new Error('no server'))),
    abortIfAsked: () => undefined,
  };
}

/** Returns a Node that is Ready and has room. */
export function readyNode(
  name: string,
  more: {
    readonly labels?: object;
    readonly spec?: object;
    readonly status?: object;
    readonly nodeInfo?: object;
  } = {},
): object {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...more.labels } },
    spec: more.spec ?? {},
    status: {
      allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
      conditions: [{ type: 'Ready', status: 'True' }],
      nodeInfo: {
        kubeletVersion: 'v1.36.3',
        kernelVersion: '6.1.0',
        containerRuntimeVersion: 'containerd://2.3.3',
        ...more.nodeInfo,
      },
      ...more.status,
    },
  };
}

/** Returns a running pod of a ReplicaSet. */
export function placedPod(
  name: string,
  nodeName: string,
  spec: object = {},
  metadata: object = {},
): object {
  const owner = {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    name: name.replace(/-\d+$/, ''),
    uid: name,
    controller: true,
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'app',
      uid: name,
      labels: { app: name.replace(/-\d+$/, '') },
      ownerReferences: [owner],
      ...metadata,
    },
    spec: { nodeName, containers: [{ name: 'c', resources: { requests: { cpu: '1' } } }], ...spec },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  };
}

export function namespaceObject(name: string, labels: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: { 'kubernetes.io/metadata.name': name, ...labels } },
  };
}
