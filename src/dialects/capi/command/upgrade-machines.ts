/**
 * Implements `refit upgrade` for Cluster API: writes the version into the object that decides it. That is the Cluster if it
 * has a topology; otherwise the control plane, and after its end the MachineDeployments. Workers must never be newer than
 * the control plane.
 */
import {
  CLUSTER_NAME,
  type Cluster,
  CONTROL_PLANE_LABEL,
  clusters,
  type Machine,
  machineDeployments,
  machines,
  SET_LABELS,
} from '../../../api/capi/machine.ts';
import type {
  UpgradeChoices,
  UpgradeDraft,
  UpgradeFlags,
  UpgradeParts,
} from '../../../cli/contract/upgrade-way.ts';
import { reportOn } from '../../../cli/ready/ready-command.ts';
import { verdictOf } from '../../../cli/ready/render.ts';
import type { Session } from '../../../cli/status/status-session.ts';
import { writeInOrder } from '../../../cli/upgrade/in-order.ts';
import { blockerReasons } from '../../../cli/upgrade/preview-plans.ts';
import {
  apiVersionOf,
  type KubeObject,
  keyOf,
  namespaced,
  type Resource,
} from '../../../kube/resources.ts';
import { ifAllowed, ifFound } from '../../../kube/status-error.ts';
import type { ReadyReport } from '../../../ready/finding.ts';
import { EXIT, RefitError } from '../../../util/errors.ts';
import { counted, listed } from '../../../util/phrases.ts';
import { memberOf } from '../../../versions/settings.ts';
import { previewMachines } from './preview-machines.ts';
import { withCluster } from './ready-cluster.ts';

function refuse(message: string, hint: string): never {
  throw new RefitError('REFIT_CONTROL', message, { hint });
}

interface Situation {
  readonly session: Session;
  readonly flags: UpgradeFlags;
  readonly parts: UpgradeParts;
}

/** Each Cluster is a choice. */
export const upgradeMachines: UpgradeChoices = async (session, flags, parts) => {
  if (flags.plan !== undefined) return [];
  const { abort } = parts;
  const listedClusters = await ifAllowed(ifFound(session.client.listAll(clusters, { abort })));
  const all = listedClusters?.items ?? [];
  const { cluster: named, namespace = 'default' } = flags;
  const meant = all.filter(
    ({ metadata }) =>
      named === undefined || (metadata.name === named && metadata.namespace === namespace),
  );
  if (named !== undefined && meant.length === 0)
    refuse(
      `there is no Cluster ${namespace}/${named}`,
      'use the kubeconfig of the management cluster, and name the namespace with -n',
    );
  return meant.map((cluster) => ({
    words: `--cluster ${cluster.metadata.name} -n ${cluster.metadata.namespace}`,
    draft: async (version) => await draftOf(version, cluster, { session, flags, parts }),
  }));
};

/** An object that decides the version of Machines. */
interface Owner {
  readonly resource: Resource;
  readonly object: KubeObject;
  /** The path of the version in the object. */
  readonly path: readonly string[];
  readonly machines: readonly Machine[];
}

const CONTROL_PLANE_PATH = ['spec', 'version'];
const DEPLOYMENT_PATH = ['spec', 'template', 'spec', 'version'];
const TOPOLOGY_PATH = ['spec', 'topology', 'version'];

function versionIn({ object, path }: Pick<Owner, 'object' | 'path'>): string {
  const found = path.reduce<unknown>((value, name) => memberOf(value, name), object);
  return typeof found === 'string' ? found : '';
}

function titleOf({ resource, object }: Pick<Owner, 'resource' | 'object'>): string {
  return `${resource.kind} ${keyOf(object)}`;
}

async function draftOf(
  version: string,
  cluster: Cluster,
  situation: Situation,
): Promise<UpgradeDraft> {
  const { session, parts } = situation;
  const { name, namespace = '' } = cluster.metadata;
  const labelSelector = `${CLUSTER_NAME}=${name}`;
  const { items } = await session.client.listAll(machines, {
    namespace,
    labelSelector,
    abort: parts.abort,
  });
  const plane = await controlPlaneOf(items, namespace, situation);
  const deployments = await deploymentsOf(items, namespace, labelSelector, situation);
  const hasTopology = cluster.spec?.topology !== undefined;
  const topology: Owner = {
    resource: clusters,
    object: cluster,
    path: TOPOLOGY_PATH,
    machines: [],
  };
  for (const owner of [...plane, ...deployments]) refuseIfMoving(owner);
  const step = hasTopology ? [topology] : nextStep(version, plane, deployments);
  const behind = step.filter((owner) => versionIn(owner) !== version);
  if (behind.length === 0)
    refuse(
      `Cluster ${namespace}/${name} already has ${version} everywhere, so nothing is left to do`,
      `see its Machines with kubectl get machines -n ${namespace}`,
    );
  const later = hasTopology
    ? []
    : deployments.filter((each) => !behind.includes(each) && versionIn(each) !== version);
  return {
    ...writesOf(version, behind, situation),
    preview: async () => await previewOf(version, cluster, situation),
    next: [
      ...(later.length === 0
        ? []
        : [
            `The control plane goes first. After its end, run this command again for ${listed(later.map(titleOf))}.`,
          ]),
      `The version is written. Follow the upgrade with: kubectl get machines -n ${namespace} --watch`,
    ],
  };
}

/** Returns the owners that are written now: the control plane until it has the version, and then the MachineDeployments. */
function nextStep(
  version: string,
  plane: readonly Owner[],
  deployments: readonly Owner[],
): readonly Owner[] {
  return plane.some((owner) => versionIn(owner) !== version) ? plane : deployments;
}

async function controlPlaneOf(
  all: readonly Machine[],
  namespace: string,
  { session, parts }: Situation,
): Promise<Owner[]> {
  const own = all.filter(({ metadata }) => metadata.labels?.[CONTROL_PLANE_LABEL] !== undefined);
  const [first] = own.flatMap(({ metadata: { ownerReferences = [] } }) =>
    ownerReferences.filter(({ controller }) => controller === true),
  );
  if (first === undefined) return [];
  const resource = namespaced(first.apiVersion, first.kind);
  const object = await session.client.get(resource, first.name, { namespace, abort: parts.abort });
  return [{ resource, object, path: CONTROL_PLANE_PATH, machines: own }];
}

async function deploymentsOf(
  all: readonly Machine[],
  namespace: string,
  labelSelector: string,
  { session, parts }: Situation,
): Promise<Owner[]> {
  const { items } = await session.client.listAll(machineDeployments, {
    namespace,
    labelSelector,
    abort: parts.abort,
  });
  return items.map((object) => ({
    resource: machineDeployments,
    object,
    path: DEPLOYMENT_PATH,
    machines: all.filter(
      ({ metadata }) => metadata.labels?.[SET_LABELS.deployment] === object.metadata.name,
    ),
  }));
}

/** Throws REFIT_CONTROL if Machines of the owner do not have its version yet. */
function refuseIfMoving(owner: Owner): void {
  const version = versionIn(owner);
  const behind = owner.machines.filter(({ spec }) => spec?.version !== version);
  if (behind.length === 0) return;
  refuse(
    `${titleOf(owner)} is still going to ${version}: ${counted(behind.length, 'Machine')} of ${owner.machines.length} ${behind.length === 1 ? 'does' : 'do'} not have it`,
    `wait for ${listed(behind.map(({ metadata }) => metadata.name))}, or see with refit why what holds them`,
  );
}

function writesOf(
  version: string,
  owners: readonly Owner[],
  { session, parts }: Situation,
): Pick<UpgradeDraft, 'objects' | 'said' | 'needs' | 'kubectl' | 'write'> {
  const patchOf = ({ path }: Owner): object =>
    path.reduceRight<unknown>((value, name) => ({ [name]: value }), version) as object;
  return {
    objects: owners.map(({ resource, object, ...owner }) => ({
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      metadata: { name: object.metadata.name, namespace: object.metadata.namespace ?? '' },
      ...patchOf({ resource, object, ...owner }),
    })),
    said: owners.map(
      (owner) => `${titleOf(owner)} changes from ${versionIn(owner)} to ${version}.`,
    ),
    needs: owners.map(({ resource: { group, plural }, object }) => ({
      verb: 'patch',
      group,
      resource: plural,
      namespace: object.metadata.namespace ?? '',
    })),
    kubectl: owners.map(
      (owner) =>
        `kubectl patch ${owner.resource.plural}.${owner.resource.group} ${owner.object.metadata.name} -n ${owner.object.metadata.namespace} --type merge -p '${JSON.stringify(patchOf(owner))}'`,
    ),
    async write(dryRun) {
      await writeInOrder(owners, titleOf, async (owner) => {
        const { name, namespace, resourceVersion } = owner.object.metadata;
        const options = { type: 'merge', dryRun, namespace, abort: parts.abort } as const;
        const body = { metadata: { resourceVersion }, ...patchOf(owner) };
        await session.client.patch(owner.resource, name, body, options);
      });
    },
  };
}

async function previewOf(
  version: string,
  { metadata: { name: cluster, namespace = '' } }: Cluster,
  { flags, parts }: Situation,
): Promise<readonly string[]> {
  const { output } = parts;
  const asked = { ...flags, cluster, namespace, to: version, output: 'text' } as const;
  output.write('\n');
  await previewMachines(asked, parts);
  if (flags.ready === false) return [];
  let report: ReadyReport | undefined;
  await withCluster(asked, parts, async (target) => {
    const rights = async () => await Promise.resolve([]);
    report = await reportOn(target, parts.accepted ?? new Map(), asked, { ...parts, rights });
    return EXIT.ok;
  });
  if (report === undefined) return [];
  output.write(`\n${verdictOf(report)}\n`);
  return blockerReasons([report]);
}
