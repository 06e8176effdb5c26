/**
 * Implements `refit rollback machine/NAME`: shows which object the user must change, to which version, and what is
 * lost. Writes nothing.
 */
import {
  type Cluster,
  type ControlPlane,
  clusters,
  extensionConfigs,
  type Machine,
  machineDeployments,
  machines,
} from '../../../api/capi/machine.ts';
import { nodeRollouts } from '../../../api/kinds.ts';
import type { NodeRollout } from '../../../api/refit/node-rollout.ts';
import { say } from '../../../cli/controls/control-command.ts';
import { dryRunLines } from '../../../cli/controls/dry-run.ts';
import type { RollBackFlags } from '../../../cli/controls/roll-back.ts';
import { table } from '../../../cli/phrases.ts';
import { connect, type SessionParts } from '../../../cli/status/status-session.ts';
import { DIALECT_LABEL } from '../../../engine/report/node-rollout-object.ts';
import type { Reading } from '../../../kube/client.ts';
import {
  apiVersionOf,
  type KubeObject,
  namespaced,
  type Resource,
} from '../../../kube/resources.ts';
import { ifAllowed, ifFound } from '../../../kube/status-error.ts';
import { failing, RefitError } from '../../../util/errors.ts';
import { ownMember } from '../../../util/own-member.ts';
import { printable } from '../../../util/printable.ts';
import { writeYaml } from '../../../util/yaml.ts';
import { capi } from '../plan/capi-dialect.ts';
import { controlPlaneOf, deploymentOf } from './machine-records.ts';
import {
  field,
  isOfTopology,
  machineWayBack,
  type Owner,
  type OwnerChange,
  patchLine,
  roleOf,
  title,
} from './machine-way-back.ts';
import { CONTROL_PLANE_PATH, DEPLOYMENT_PATH, TOPOLOGY_PATH } from './version-paths.ts';

type Flags = RollBackFlags & { readonly namespace?: string | undefined };

const refuse = failing('REFIT_CONTROL');
const WANTED =
  'write machine/NAME, machinedeployment/NAME, or a control plane such as kubeadmcontrolplane/NAME';

export async function rollBackMachines(
  subject: string,
  flags: Flags,
  parts: SessionParts,
): Promise<void> {
  const { abort, clock, output } = parts;
  refuseFlags(flags);
  const { kind, name } = subjectOf(subject);
  const { namespace = 'default' } = flags;
  using client = await connect(flags, 'refit-control');
  const reading = { client, abort };
  const all = await machinesIn(reading, namespace);
  const found = await ownerOf(reading, all, { kind, name, namespace });
  const { owner, mine, cluster } = await withTopology(reading, all, found);
  const change = machineWayBack({
    owner,
    machines: mine,
    named: kind === 'machine' ? name : undefined,
    cluster,
    servers: serversOf(all, mine),
    rollouts: await rolloutsIn(reading, namespace),
    extension: await extensionIn(reading),
    run: flags.run,
    now: clock.now(),
  });
  const { metadata } = owner.object;
  if (flags.output === 'yaml')
    return output.write(
      writeYaml({
        apiVersion: owner.apiVersion,
        kind: owner.kind,
        metadata: { name: metadata.name, namespace: metadata.namespace },
        ...change.patch,
      }),
    );
  // In a dry run, the webhooks of Cluster API check the change in the same way as a real change.
  if (flags.dryRun === 'server')
    await client.patch(resourceOf(owner), metadata.name, change.patch, {
      type: 'merge',
      dryRun: true,
      namespace: metadata.namespace,
      abort,
    });
  say(parts, shown(change));
  // The command line is not wrapped, so that the user can copy it.
  output.write(`\n${printable(`  ${patchLine(change)}`)}\n\n`);
  say(parts, [
    ...change.lost.map((sentence) => `lost: ${sentence}`),
    ...(flags.dryRun === undefined
      ? ['Refit wrote nothing: you must change the owner yourself.']
      : dryRunLines(flags)),
  ]);
}

function refuseFlags({ url, sha256, image, skipNode }: Flags): void {
  if ((url ?? sha256 ?? image ?? skipNode) === undefined) return;
  throw new RefitError(
    'REFIT_USAGE',
    '--url, --sha256, --image and --skip-node are for Plans: Machines take a version from the payload address of the extension',
  );
}

function subjectOf(subject: string): { readonly kind: string; readonly name: string } {
  const [kind = '', name = '', ...more] = subject.split('/');
  const isName = /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(name);
  if (isName && more.length === 0) return { kind: kind.toLowerCase(), name };
  throw new RefitError(
    'REFIT_USAGE',
    `${JSON.stringify(subject)} names no Machine and no owner: ${WANTED}, and its namespace with -n`,
  );
}

async function machinesIn({ client, abort }: Reading, namespace: string): Promise<Machine[]> {
  const found = await ifFound(client.listAll(machines, { namespace, abort }));
  if (found !== undefined) return found.items;
  throw new RefitError('REFIT_NO_CRD', 'this cluster has no Machines of Cluster API', {
    hint: 'use the kubeconfig of the management cluster',
  });
}

interface Subject {
  readonly kind: string;
  readonly name: string;
  readonly namespace: string;
}

interface Found {
  readonly owner: Owner;
  /** The Machines of the owner. */
  readonly mine: readonly Machine[];
}

/**
 * Returns the MachineDeployment or the control plane that the user named. If the user named a Machine, returns the
 * owner of that Machine.
 */
async function ownerOf(
  reading: Reading,
  all: readonly Machine[],
  { kind, name, namespace }: Subject,
): Promise<Found> {
  if (kind === 'machinedeployment') return await deploymentFound(reading, all, name, namespace);
  if (kind !== 'machine') {
    const mine = all.filter((machine) => {
      const control = controlPlaneOf(machine);
      return control?.name === name && control.kind.toLowerCase() === kind;
    });
    const [machine] = mine;
    const reference = machine && controlPlaneOf(machine);
    if (reference === undefined)
      return refuse(`no Machine in namespace ${namespace} belongs to ${kind}/${name}`);
    return await controlPlaneFound(reading, reference, mine, namespace);
  }
  const machine = all.find(({ metadata }) => metadata.name === name);
  if (machine === undefined) return refuse(`there is no Machine ${namespace}/${name}`);
  const reference = controlPlaneOf(machine);
  if (reference !== undefined) {
    const mine = all.filter((each) => controlPlaneOf(each)?.uid === reference.uid);
    return await controlPlaneFound(reading, reference, mine, namespace);
  }
  const deployment = deploymentOf(machine);
  if (deployment === undefined)
    return refuse(
      `Machine ${namespace}/${name} belongs to no MachineDeployment and no control plane: Cluster API does not update such a Machine, and only a new Machine has another version`,
    );
  return await deploymentFound(reading, all, deployment, namespace);
}

async function deploymentFound(
  { client, abort }: Reading,
  all: readonly Machine[],
  name: string,
  namespace: string,
): Promise<Found> {
  const object = await ifFound(client.get(machineDeployments, name, { namespace, abort }));
  if (object === undefined) return refuse(`there is no MachineDeployment ${namespace}/${name}`);
  const owner = {
    ...described(machineDeployments, object),
    path: DEPLOYMENT_PATH,
    rollout: object.spec?.rollout,
  };
  const mine = all.filter((machine) => deploymentOf(machine) === name);
  return { owner, mine };
}

async function controlPlaneFound(
  { client, abort }: Reading,
  { apiVersion, kind, name }: { apiVersion: string; kind: string; name: string },
  mine: readonly Machine[],
  namespace: string,
): Promise<Found> {
  const resource = namespaced<ControlPlane>(apiVersion, kind);
  const object = await ifFound(client.get(resource, name, { namespace, abort }));
  if (object === undefined) return refuse(`there is no ${kind} ${namespace}/${name}`);
  const owner = {
    ...described(resource, object),
    path: CONTROL_PLANE_PATH,
    rollout: object.spec?.rollout,
    replicas: mine.length,
  };
  return { owner, mine };
}

/** Replaces the owner by the Cluster if a topology owns the object, because the Cluster then decides the versions of all its Machines. */
async function withTopology(
  { client, abort }: Reading,
  all: readonly Machine[],
  { owner, mine }: Found,
): Promise<Found & { readonly cluster: Cluster | undefined }> {
  const name = mine[0]?.spec?.clusterName;
  const { namespace } = owner.object.metadata;
  const cluster =
    name === undefined
      ? undefined
      : await ifFound(client.get(clusters, name, { namespace, abort }));
  if (cluster === undefined || !isOfTopology(owner.object)) return { owner, mine, cluster };
  const ofTopology = all.filter(
    (machine) => machine.spec?.clusterName === name && isOfTopology(machine),
  );
  return {
    owner: { ...described(clusters, cluster), path: TOPOLOGY_PATH },
    mine: ofTopology.length > 0 ? ofTopology : mine,
    cluster,
  };
}

function described(resource: Resource, object: KubeObject) {
  const { kind, plural, group } = resource;
  return { object, kind, resource: `${plural}.${group}`, apiVersion: apiVersionOf(resource) };
}

function resourceOf({ apiVersion, kind }: Owner): Resource {
  return namespaced(apiVersion, kind);
}

function serversOf(all: readonly Machine[], mine: readonly Machine[]): (string | undefined)[] {
  const name = mine[0]?.spec?.clusterName;
  return all.flatMap((machine) =>
    machine.spec?.clusterName === name && roleOf(machine) === 'controller'
      ? [machine.spec?.version]
      : [],
  );
}

async function rolloutsIn(
  { client, abort }: Reading,
  namespace: string,
): Promise<readonly NodeRollout[]> {
  const found = await ifFound(client.listAll(nodeRollouts, { namespace, abort }));
  return (found?.items ?? []).filter(
    ({ metadata }) => ownMember(metadata.labels, DIALECT_LABEL) === capi.name,
  );
}

/**
 * Resolves with the registration of the extension that updates Machines in place; undefined if there is none, or if the user may not read
 * registrations. Cluster API allows only one such extension.
 */
async function extensionIn({ client, abort }: Reading) {
  const found = await ifAllowed(ifFound(client.listAll(extensionConfigs, { abort })));
  return found?.items.find(({ status }) =>
    status?.handlers?.some(({ requestHook }) => requestHook?.hook === 'UpdateMachine'),
  );
}

function shown({ owner, version, moves, first }: OwnerChange): string[] {
  const rows = moves.map(({ machine, node, from, to, note }) => [machine, node, from, to, note]);
  return [
    `These Machines can go back: set ${field(owner)} of ${title(owner)} to ${version}. This one change applies to all of them:`,
    ...table(['MACHINE', 'NODE', 'FROM', 'TO', 'THE RECORD'], rows, Number.POSITIVE_INFINITY),
    ...first.map((sentence) => `first: ${sentence}`),
    'Then run:',
  ];
}
