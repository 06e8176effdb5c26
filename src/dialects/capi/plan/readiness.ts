/** Reads the flags and feature gates that Cluster API gives to kubeadm. */
import {
  CLUSTER_NAME,
  type Machine,
  machines,
  NODE_ANNOTATIONS,
} from '../../../api/capi/machine.ts';
import {
  type KubeObject,
  keyOf,
  type Node,
  namespaced,
  nodes,
  type Resource,
} from '../../../kube/resources.ts';
import { type Asking, answer, type ReadResult } from '../../../ready/asking.ts';
import {
  type DialectReadiness,
  type DrainLimit,
  readPlace,
  type SettingsFound,
  together,
  unreadPlace,
} from '../../../ready/context.ts';
import {
  memberOf,
  type Setting,
  settingsOfClusterConfiguration,
  settingsOfExtraArgs,
} from '../../../versions/settings.ts';
import { agentFindings } from '../../shared/agents-ground.ts';
import { kubeletRights } from './kubelet-rights.ts';

interface Configured extends KubeObject {
  readonly spec?: unknown;
}

const controlPlanes = namespaced<Configured>(
  'controlplane.cluster.x-k8s.io/v1beta2',
  'KubeadmControlPlane',
);
const BOOTSTRAP_GROUP = 'bootstrap.cluster.x-k8s.io';
const templates = namespaced<Configured>(`${BOOTSTRAP_GROUP}/v1beta2`, 'KubeadmConfigTemplate');
const configs = namespaced<Configured>(`${BOOTSTRAP_GROUP}/v1beta2`, 'KubeadmConfig');

/** The kinds that make Machines of workers. Each names the configuration of new Machines in `bootstrap.configRef`. */
const WORKER_KINDS = ['MachineDeployment', 'MachineSet', 'MachinePool'].map((kind) =>
  namespaced<Configured>('cluster.x-k8s.io/v1beta2', kind),
);

export const clusterApiReadiness: DialectReadiness = {
  async drainLimits(asking) {
    const asked = await asking.list(nodes);
    const own = asked.kind === 'answer' ? clustersOf(asked.value) : new Set<string>();
    if (asked.kind === 'unknown' || own.size === 0) return new Map();
    const limits = await limitsIn(asking, (each) => own.has(textOf(each)));
    const untold: DrainLimit =
      limits.kind === 'unknown'
        ? limits
        : { kind: 'unknown', why: 'it is in the management cluster, which --cluster reads' };
    // The annotations of a Node only decide whether there is a question. The Machines themselves answer it.
    const isOfCluster = ({ metadata: { annotations = {} } }: Node): boolean =>
      NODE_ANNOTATIONS.cluster in annotations;
    return new Map(
      asked.value.filter(isOfCluster).flatMap(({ metadata: { name } }) => {
        const limit =
          limits.kind === 'answer' && limits.value.has(name) ? limits.value.get(name) : untold;
        return limit === undefined ? [] : [[name, limit] as const];
      }),
    );
  },
  async settings(asking) {
    const [asked, objects] = await Promise.all([asking.list(nodes), askObjects(asking)]);
    // The versions of other Clusters, which the objects in a management cluster describe, are not those of its own nodes.
    if (asked.kind === 'answer') {
      const own = clustersOf(asked.value);
      if (own.size === 0) return together([]);
      return await settingsIn(asking, objects, (each) => own.has(textOf(each)));
    }
    const isUsed = objects.some(({ found }) => found.kind === 'unknown' || found.value.length > 0);
    const why = `which Cluster this is: ${asked.why}`;
    return isUsed ? unreadPlace('the objects of Cluster API', why) : together([]);
  },
  async machines({ list, allows }, to) {
    const asked = await list(nodes);
    // Other checks say already that Nodes cannot be read.
    if (asked.kind === 'unknown') return [];
    return [
      ...agentFindings({ kind: 'Node', objects: asked.value }, 'kubeadm'),
      ...(await kubeletRights(asked.value, { allows }, to)),
    ];
  },
};

/** Names a Cluster of Cluster API. */
export interface ClusterName {
  readonly cluster: string;
  readonly namespace: string;
}

/** Returns the readiness of one Cluster. The objects that configure its nodes are in the management cluster. */
export function readinessOfCluster(management: Asking, wanted: ClusterName): DialectReadiness {
  return {
    ...clusterApiReadiness,
    async drainLimits({ list }) {
      const limits = await limitsIn(management, (each) => textOf(each) === textOf(wanted));
      const asked = await list(nodes);
      const names = asked.kind === 'answer' ? asked.value.map(({ metadata }) => metadata.name) : [];
      return new Map(
        names.flatMap((name) => {
          const limit = limits.kind === 'unknown' ? limits : limits.value.get(name);
          return limit === undefined ? [] : [[name, limit] as const];
        }),
      );
    },
    settings: async () =>
      await settingsIn(
        management,
        await askObjects(management),
        (each) => textOf(each) === textOf(wanted),
      ),
  };
}

/** Resolves with the limit of each Machine of the meant Clusters, by the name of its Node; undefined for a Machine without one. */
async function limitsIn(
  { list }: Pick<Asking, 'list'>,
  isMeant: (cluster: ClusterName) => boolean,
): Promise<ReadResult<ReadonlyMap<string, DrainLimit | undefined>>> {
  const asked = await list(machines, { slim: slimMachine });
  if (asked.kind === 'unknown') return asked;
  return answer(
    new Map(
      asked.value
        .filter((each) => isMeant(clusterOf(each)))
        .flatMap(({ spec, status }) => {
          const name = status?.nodeRef?.name;
          const { nodeDrainTimeoutSeconds: seconds = 0 } = spec?.deletion ?? {};
          const limit = seconds > 0 ? ({ kind: 'limit', seconds } as const) : undefined;
          return name === undefined ? [] : [[name, limit] as const];
        }),
    ),
  );
}

/** Keeps what the limits of drains need of a Machine. */
function slimMachine({ metadata, spec = {}, status = {} }: Machine): Machine {
  const { name, namespace = '', labels = {}, ownerReferences = [] } = metadata;
  const { clusterName = '', deletion = {} } = spec;
  return {
    metadata: { name, namespace, labels, ownerReferences },
    spec: { clusterName, deletion },
    status: { ...(status.nodeRef && { nodeRef: status.nodeRef }) },
  };
}

function textOf({ cluster, namespace }: ClusterName): string {
  return `${namespace}/${cluster}`;
}

/** Returns the Clusters to which Cluster API says that the Nodes belong. */
function clustersOf(all: readonly Node[]): ReadonlySet<string> {
  return new Set(
    all.flatMap(({ metadata: { annotations = {} } }) => {
      const cluster = annotations[NODE_ANNOTATIONS.cluster];
      const namespace = annotations[NODE_ANNOTATIONS.namespace];
      return cluster === undefined || namespace === undefined ? [] : textOf({ cluster, namespace });
    }),
  );
}

/** Returns the Cluster to which an object of Cluster API belongs. */
function clusterOf({ metadata, spec }: Configured): ClusterName {
  const { namespace = '', labels, ownerReferences = [] } = metadata;
  const named = memberOf(spec, 'clusterName');
  const owner = ownerReferences.find(({ kind }) => kind === 'Cluster')?.name;
  const cluster = typeof named === 'string' ? named : (labels?.[CLUSTER_NAME] ?? owner ?? '');
  return { cluster, namespace };
}

interface AskedKind {
  readonly resource: Resource<Configured>;
  readonly found: ReadResult<readonly Configured[]>;
}

/** Lists the objects that say how the nodes of Clusters are configured. The templates are listed only if one is named. */
async function askObjects({ list }: Pick<Asking, 'list'>): Promise<readonly AskedKind[]> {
  return await Promise.all(
    [controlPlanes, ...WORKER_KINDS].map(async (resource) => ({
      resource,
      found: await list(resource),
    })),
  );
}

/** Reads the configurations with which new Machines of the meant Clusters start. */
async function settingsIn(
  asking: Asking,
  objects: readonly AskedKind[],
  isMeant: (cluster: ClusterName) => boolean,
): Promise<SettingsFound> {
  const unread = objects.flatMap(({ resource, found }) =>
    found.kind === 'unknown'
      ? [unreadPlace(`objects of the kind ${resource.kind}`, found.why)]
      : [],
  );
  const own = objects.flatMap(({ resource, found }) =>
    (found.kind === 'unknown' ? [] : found.value)
      .filter((each) => isMeant(clusterOf(each)))
      .map((object) => ({ resource, object })),
  );
  const planes = own.filter(({ resource }) => resource === controlPlanes);
  const workers = own.filter(({ resource }) => resource !== controlPlanes);
  const references = new Map(
    workers.flatMap(({ resource, object }) => referenceOf(resource.kind, object)),
  );
  const ofWorkers = await Promise.all(
    [...references.values()].map(async (each) => await askReferenced(each, asking)),
  );
  const ofPlanes = planes.map(({ object }) =>
    readObject(controlPlanes, object, ['kubeadmConfigSpec']),
  );
  return together([...ofPlanes, ...ofWorkers, ...unread]);
}

interface Reference {
  readonly kind: string;
  readonly name: string;
  readonly namespace: string;
  /** The first object that names it. */
  readonly by: string;
}

/** Returns the configuration of kubeadm that the object names, if any, and a text that is the same for the same one. */
function referenceOf(kind: string, object: Configured): (readonly [string, Reference])[] {
  const { metadata, spec } = object;
  // A MachineSet of a MachineDeployment may still name a template that the MachineDeployment has left.
  const isOwned = metadata.ownerReferences?.some((owner) => owner.kind === 'MachineDeployment');
  if (kind === 'MachineSet' && isOwned === true) return [];
  const path = ['template', 'spec', 'bootstrap', 'configRef'];
  const reference = path.reduce<unknown>((value, each) => memberOf(value, each), spec);
  const wanted = memberOf(reference, 'kind');
  const name = memberOf(reference, 'name');
  const isKnown = [templates, configs].some((each) => each.kind === wanted);
  if (!isKnown || typeof wanted !== 'string' || typeof name !== 'string') return [];
  const { namespace = '' } = metadata;
  const by = `${kind} ${keyOf(object)}`;
  return [[`${wanted} ${namespace}/${name}`, { kind: wanted, name, namespace, by }]];
}

async function askReferenced(
  { kind, name, namespace, by }: Reference,
  { get, list }: Asking,
): Promise<SettingsFound> {
  const isTemplate = kind === templates.kind;
  const object = `${kind} ${namespace}/${name}`;
  // There is a KubeadmConfig for each Machine, so only those that a MachinePool names are read.
  const asked = isTemplate
    ? found(await list(templates), name, namespace)
    : await get(configs, name, namespace);
  if (asked.kind === 'unknown') return unreadPlace(object, asked.why);
  if (asked.value === undefined)
    return unreadPlace(object, `${by} names it, and it does not exist`);
  return isTemplate
    ? readObject(templates, asked.value, ['template', 'spec'])
    : readObject(configs, asked.value, []);
}

function found(
  asked: ReadResult<readonly Configured[]>,
  name: string,
  namespace: string,
): ReadResult<Configured | undefined> {
  if (asked.kind === 'unknown') return asked;
  const isNamed = ({ metadata }: Configured): boolean =>
    metadata.name === name && metadata.namespace === namespace;
  return answer(asked.value.find(isNamed));
}

/** Returns the settings of an object whose spec has a configuration of kubeadm at the path. */
function readObject(
  { kind }: Resource<Configured>,
  object: Configured,
  path: readonly string[],
): SettingsFound {
  const configuration = path.reduce<unknown>((value, name) => memberOf(value, name), object.spec);
  const settings = settingsOfKubeadm(configuration, ['spec', ...path].join('.'));
  return readPlace(`${kind} ${keyOf(object)}`, settings);
}

/** Returns the settings in a spec of a KubeadmConfig. `at` is its path. */
export function settingsOfKubeadm(spec: unknown, at: string): Setting[] {
  const cluster = memberOf(spec, 'clusterConfiguration');
  const ofCluster = settingsOfClusterConfiguration(cluster, `${at}.clusterConfiguration.`);
  const ofKubelets = ['initConfiguration', 'joinConfiguration'].flatMap((field) => {
    const registration = memberOf(memberOf(spec, field), 'nodeRegistration');
    const place = `${at}.${field}.nodeRegistration.kubeletExtraArgs`;
    return settingsOfExtraArgs('kubelet', memberOf(registration, 'kubeletExtraArgs'), place);
  });
  return [...ofCluster, ...ofKubelets];
}
