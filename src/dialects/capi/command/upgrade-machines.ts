/**
 * Implements `refit upgrade` for Cluster API: writes the version into the object that decides it. That is the Cluster if it
 * has a topology; otherwise the control plane, and after its end the MachineDeployments. Workers must never be newer than
 * the control plane.
 */
import {
  CLUSTER_NAME,
  type Cluster,
  CONTROL_PLANE_GROUP,
  CONTROL_PLANE_LABEL,
  type ControlPlane,
  clusters,
  type Machine,
  machineDeployments,
  machines,
} from '../../../api/capi/machine.ts';
import type {
  UpgradeChoices,
  UpgradeDraft,
  UpgradeSituation,
} from '../../../cli/contract/upgrade-way.ts';
import { readyLines } from '../../../cli/preview/view.ts';
import { reportOn } from '../../../cli/ready/ready-command.ts';
import type { Session } from '../../../cli/status/status-session.ts';
import { connectionWords } from '../../../cli/upgrade/connection-words.ts';
import { writeInOrder } from '../../../cli/upgrade/in-order.ts';
import { patchCommand } from '../../../cli/upgrade/patch-command.ts';
import { blockerReasons } from '../../../cli/upgrade/preview-plans.ts';
import { refuseUpgrade } from '../../../cli/upgrade/refuse-upgrade.ts';
import {
  apiVersionOf,
  type KubeObject,
  keyOf,
  namespaced,
  type Resource,
} from '../../../kube/resources.ts';
import { ifAllowed, ifFound, isConflict } from '../../../kube/status-error.ts';
import { unlessError } from '../../../util/errors.ts';
import { counted, listed } from '../../../util/phrases.ts';
import { compareVersionTexts } from '../../../util/version.ts';
import { memberOf } from '../../../versions/settings.ts';
import { deploymentOf } from './machine-records.ts';
import { previewMachines } from './preview-machines.ts';
import { withCluster } from './ready-cluster.ts';
import { CONTROL_PLANE_PATH, DEPLOYMENT_PATH, nested, TOPOLOGY_PATH } from './version-paths.ts';

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
    refuseUpgrade(
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
  situation: UpgradeSituation,
): Promise<UpgradeDraft> {
  const { session, parts } = situation;
  const { name, namespace = '' } = cluster.metadata;
  const labelSelector = `${CLUSTER_NAME}=${name}`;
  const { items } = await session.client.listAll(machines, {
    namespace,
    labelSelector,
    abort: parts.abort,
  });
  refusePaused(cluster);
  const plane = await controlPlaneOf(cluster, items, namespace, situation);
  const deployments = await deploymentsOf(items, namespace, labelSelector, situation);
  const hasTopology = cluster.spec?.topology !== undefined;
  const topology: Owner = {
    resource: clusters,
    object: cluster,
    path: TOPOLOGY_PATH,
    machines: [],
  };
  for (const owner of [...plane, ...deployments]) refuseIfMoving(owner);
  if (hasTopology) refuseIfBehind(topology, [...plane, ...deployments]);
  else refuseWithoutPlane(cluster, plane, version);
  const step = hasTopology ? [topology] : nextStep(version, plane, deployments);
  for (const owner of step) refuseOlder(owner, version);
  const behind = step.filter((owner) => versionIn(owner) !== version);
  if (behind.length === 0)
    refuseUpgrade(
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

/**
 * Resolves with the control plane that the Cluster names. A managed control plane has no Machines. Resolves with an empty
 * list if the Cluster names none.
 */
async function controlPlaneOf(
  { spec }: Cluster,
  all: readonly Machine[],
  namespace: string,
  { session, parts }: UpgradeSituation,
): Promise<Owner[]> {
  const { apiVersion, apiGroup, kind, name } = spec?.controlPlaneRef ?? {};
  if (kind === undefined || name === undefined) return [];
  const own = all.filter(({ metadata }) => metadata.labels?.[CONTROL_PLANE_LABEL] !== undefined);
  const [reference] = own.flatMap(({ metadata: { ownerReferences = [] } }) =>
    ownerReferences.filter((each) => each.controller === true && each.kind === kind),
  );
  const group = apiGroup ?? apiVersion?.split('/')[0] ?? CONTROL_PLANE_GROUP;
  const version =
    reference?.apiVersion ?? apiVersion ?? `${group}/${await servedVersion(group, session)}`;
  const resource = namespaced<ControlPlane>(version, kind);
  const object = await session.client.get(resource, name, { namespace, abort: parts.abort });
  return [{ resource, object, path: CONTROL_PLANE_PATH, machines: own }];
}

/** Resolves with the version of the group that the API server prefers. */
async function servedVersion(group: string, { client, abort }: Session): Promise<string> {
  const { status, body } = await client.raw(`/apis/${group}`, { abort });
  const answer: unknown = status === 200 ? JSON.parse(body) : undefined;
  const found = memberOf(memberOf(answer, 'preferredVersion'), 'version');
  return typeof found === 'string'
    ? found
    : refuseUpgrade(
        `the API group ${group} of the control plane is not served`,
        'install its provider',
      );
}

/** Throws REFIT_CONTROL if nothing says that the control plane has the version, because no worker may be newer. */
function refuseWithoutPlane(
  { metadata }: Cluster,
  [plane]: readonly Owner[],
  version: string,
): void {
  if (plane === undefined)
    return refuseUpgrade(
      `Cluster ${metadata.namespace}/${metadata.name} names no control plane, so nothing says which version its API servers have`,
      'upgrade the control plane first, and change the MachineDeployments with kubectl',
    );
  const running = memberOf(memberOf(plane.object, 'status'), 'version');
  const isThere = versionIn(plane) === version;
  if (!isThere || typeof running !== 'string' || running === version) return;
  refuseUpgrade(
    `${titleOf(plane)} is still going to ${version}: its API servers have ${running}`,
    'run this again when its status has the version',
  );
}

function refusePaused({ metadata, spec }: Cluster): void {
  if (spec?.paused !== true) return;
  refuseUpgrade(
    `Cluster ${metadata.namespace}/${metadata.name} is paused, so nothing would happen`,
    'set its spec.paused to false first',
  );
}

/** Throws REFIT_CONTROL if an object of the topology does not have its version yet. */
function refuseIfBehind(topology: Owner, owners: readonly Owner[]): void {
  const wanted = versionIn(topology);
  const behind = owners.filter((owner) => versionIn(owner) !== wanted);
  if (behind.length === 0) return;
  refuseUpgrade(
    `${titleOf(topology)} is still going to ${wanted}: ${listed(behind.map((owner) => `${titleOf(owner)} has ${versionIn(owner)}`))}`,
    'run this again when all of them have the version',
  );
}

function refuseOlder(owner: Owner, version: string): void {
  if (!(compareVersionTexts(version, versionIn(owner)) < 0)) return;
  refuseUpgrade(
    `${titleOf(owner)} has ${versionIn(owner)}, and ${version} is older`,
    'to go back to an earlier version, use refit rollback machine/NAME',
  );
}

/** The maximum number of attempts. Controllers often write the status of these objects, so a write may conflict. */
const MAX_TRIES = 10;

/** Writes the version, unless somebody else has written another one since it was read. */
async function writeUnlessOther(
  owner: Owner,
  write: (resourceVersion: string | undefined) => Promise<void>,
  { session: { client }, parts: { abort } }: UpgradeSituation,
): Promise<void> {
  const { name, namespace } = owner.object.metadata;
  let { object } = owner;
  for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
    const done = write(object.metadata.resourceVersion).then(() => true);
    if ((await unlessError(isConflict)(done)) === true) return;
    object = await client.get(owner.resource, name, { namespace, abort });
    if (versionIn({ ...owner, object }) !== versionIn(owner))
      refuseUpgrade(`${titleOf(owner)} got another version meanwhile`, 'run this again');
  }
  refuseUpgrade(`${titleOf(owner)} changed during each attempt`, 'run this again');
}

async function deploymentsOf(
  all: readonly Machine[],
  namespace: string,
  labelSelector: string,
  { session, parts }: UpgradeSituation,
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
    machines: all.filter((machine) => deploymentOf(machine) === object.metadata.name),
  }));
}

/** Throws REFIT_CONTROL if Machines of the owner do not have its version yet. */
function refuseIfMoving(owner: Owner): void {
  const version = versionIn(owner);
  const behind = owner.machines.filter(({ spec }) => spec?.version !== version);
  if (behind.length === 0) return;
  refuseUpgrade(
    `${titleOf(owner)} is still going to ${version}: ${counted(behind.length, 'Machine')} of ${owner.machines.length} ${behind.length === 1 ? 'does' : 'do'} not have it`,
    `wait for ${listed(behind.map(({ metadata }) => metadata.name))}, or see with refit why what holds them`,
  );
}

function writesOf(
  version: string,
  owners: readonly Owner[],
  situation: UpgradeSituation,
): Pick<UpgradeDraft, 'objects' | 'said' | 'needs' | 'kubectl' | 'write'> {
  const { session, flags, parts } = situation;
  const patchOf = ({ path }: Owner): object => nested(path, version);
  return {
    objects: owners.map(({ resource, object, ...owner }) => ({
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      metadata: { name: object.metadata.name, namespace: object.metadata.namespace ?? '' },
      ...patchOf({ resource, object, ...owner }),
    })),
    said: [
      ...owners.map((owner) => `${titleOf(owner)} changes from ${versionIn(owner)} to ${version}.`),
      'Only the version changes. If Machines need another image, change their template as well.',
    ],
    needs: owners.map(({ resource: { group, plural }, object }) => ({
      verb: 'patch',
      group,
      resource: plural,
      name: object.metadata.name,
      namespace: object.metadata.namespace ?? '',
    })),
    kubectl: owners.map((owner) =>
      patchCommand(
        `${owner.resource.plural}.${owner.resource.group}`,
        owner.object,
        patchOf(owner),
        connectionWords(flags),
      ),
    ),
    async write(dryRun) {
      await writeInOrder(owners, titleOf, async (owner) => {
        await writeUnlessOther(
          owner,
          async (resourceVersion) => {
            const { name, namespace } = owner.object.metadata;
            const options = { type: 'merge', dryRun, namespace, abort: parts.abort } as const;
            const body = { metadata: { resourceVersion }, ...patchOf(owner) };
            await session.client.patch(owner.resource, name, body, options);
          },
          situation,
        );
      });
    },
  };
}

async function previewOf(
  version: string,
  { metadata: { name: cluster, namespace = '' } }: Cluster,
  { flags, parts }: UpgradeSituation,
): Promise<readonly string[]> {
  const { output } = parts;
  const asked = { ...flags, cluster, namespace, to: version, output: 'text' } as const;
  output.write('\n');
  await previewMachines(asked, parts);
  if (flags.ready === false) return [];
  const rights = async () => await Promise.resolve([]);
  const report = await withCluster(
    asked,
    parts,
    async (target) =>
      await reportOn(target, parts.accepted ?? new Map(), asked, { ...parts, rights }),
  );
  const words = `--to ${version} --cluster ${cluster} --namespace ${namespace}`;
  output.write(`\n${readyLines(report, words).join('\n')}\n`);
  return blockerReasons([report]);
}
