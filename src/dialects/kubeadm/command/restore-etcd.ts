/** Implements `refit kubeadm restore-etcd`: checks all hosts, asks the user, and restores a snapshot on all members. */

import { leaderOf } from '../../../cli/status/load.ts';
import { leases } from '../../../kube/resources.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { EXIT, RefitError } from '../../../util/errors.ts';
import { type EtcdAnswer, etcdProblems } from '../host/etcd.ts';
import { filledScript } from '../host/filled-script.ts';
import { expectNone, until } from '../host/host-steps.ts';
import { etcdAnswers } from '../host/probe.ts';
import { detached } from '../host/scripts.ts';
import { controlPlaneOf, type ManifestHost } from '../plan/manifest.ts';
import { PLACE } from '../plan/plan-object.ts';
import { confirmInPerson } from './kubeadm-command.ts';
import {
  controlPlaneAlone,
  inSession,
  type KubeadmFlags,
  type KubeadmSession,
  onAll,
  outputOn,
} from './upgrade-session.ts';

/** The most milliseconds to wait until the members have elected a leader. */
const HEALTHY_MS = 300_000;

/** Restores a snapshot of etcd. Resolves with the exit code: 1 if the user did not answer yes. */
export async function restoreEtcd(
  flags: KubeadmFlags & { readonly snapshot: string },
  abort: AbortSignal,
) {
  const restore = async (session: KubeadmSession): Promise<number> => {
    const { output, shells, clock } = session;
    const { snapshot } = flags;
    await refuseDuringApply(session);
    const hosts = controlPlaneOf(session.manifest);
    const options = { snapshot, stamp: rfc3339(clock.now()).replaceAll(/\W/g, '') };
    const found = (await onControlPlane(session, restoreFactsScript(options))).map((line) =>
      line.split(' '),
    );
    const sha256 = commonHash(
      snapshot,
      found.map(([hash]) => hash),
    );
    output.write(`${snapshot} is a complete snapshot of etcd; its SHA-256 is ${sha256}.\n`);
    const names = hosts.map(({ name }) => name).join(', ');
    output.write(
      `The restore replaces the data of etcd on ${names}: everything written after the snapshot is lost.\n`,
    );
    output.write(
      'A control-plane host that is not in the manifest must be switched off, because it would continue with its own data.\n',
    );
    const answers = await etcdAnswers(shells, hosts);
    const most = Math.max(
      ...[...answers.values()].map((each) => (typeof each === 'object' ? each.members.length : 0)),
    );
    const left = `etcd has ${most} members, the manifest has ${hosts.length} control-plane hosts`;
    const advice = 'add the other hosts to the manifest, or run etcdctl member remove';
    if (most > hosts.length) throw new RefitError('REFIT_REFUSED', `${left}: ${advice}`);
    if (problemsIn(answers, hosts).length === 0)
      output.write('All members of etcd are healthy: restore only if their data is wrong.\n');
    const ask = async (): Promise<boolean> => await confirmInPerson('Restore etcd?', session);
    if (!(await isWantedAndFree(session, ask))) return EXIT.failed;
    const members = found.map(([, member]) => member).join(',');
    for (const [doing, script] of Object.entries(restoreScripts(options, members))) {
      if (doing === 'Starting the API server') await untilHealthy(session, hosts);
      output.write(`${doing}.\n`);
      await onControlPlane(session, script);
    }
    output.write(
      `Done. Each host keeps the previous data as before-restore-${options.stamp}, next to the data of etcd.\n`,
    );
    return EXIT.ok;
  };
  return await inSession(flags, abort, restore, controlPlaneAlone);
}

type LeaseReader = Pick<KubeadmSession, 'client' | 'clock' | 'abort'>;

/** Throws REFIT_REFUSED while a run of `refit kubeadm apply` holds the Lease. */
async function refuseDuringApply({ client, clock, abort }: LeaseReader): Promise<void> {
  // The restore may be needed because an API server is down. In that case the Lease cannot be read.
  const lease = await client.get(leases, PLACE.name, { ...PLACE, abort }).catch(() => undefined);
  const runs = `a run of refit kubeadm apply holds lease ${PLACE.namespace}/${PLACE.name}; let it end, or end it`;
  const { state } = leaderOf(lease, clock.now());
  if (state === 'held' || state === 'late') throw new RefitError('REFIT_REFUSED', runs);
}

/**
 * Resolves with the answer of the user. The user may take minutes to answer, so a run that began meanwhile is refused
 * as well.
 */
export async function isWantedAndFree(
  session: LeaseReader,
  ask: () => Promise<boolean>,
): Promise<boolean> {
  if (!(await ask())) return false;
  await refuseDuringApply(session);
  return true;
}

/** Returns the hash of the snapshot, which must be the same on all hosts. */
export function commonHash(snapshot: string, hashes: readonly (string | undefined)[]) {
  const [sha256, other] = new Set(hashes);
  // Guard same-snapshot. All members of etcd start from the same data.
  if (other !== undefined)
    throw new RefitError(
      'REFIT_REFUSED',
      `${snapshot} is not the same file on all hosts: copy one of them to all`,
    );
  return sha256;
}

async function untilHealthy(
  session: KubeadmSession,
  hosts: readonly ManifestHost[],
): Promise<void> {
  const alarms = await until(session, HEALTHY_MS, async () => {
    const wrong = problemsIn(await etcdAnswers(session.shells, hosts), hosts);
    // Alarms are ignored. An alarm is part of the snapshot, so each restore sets it again. It ends only after an API
    // server has deleted enough data.
    expectNone(wrong.filter((problem) => !problem.startsWith('alarm ')));
    return wrong;
  });
  for (const alarm of alarms)
    session.output.write(`The snapshot contains this alarm, too: ${alarm}.\n`);
}

function problemsIn(
  answers: ReadonlyMap<string, EtcdAnswer>,
  hosts: readonly ManifestHost[],
): string[] {
  const silent = hosts.filter(({ name }) => typeof answers.get(name) !== 'object');
  return [
    ...silent.map(
      ({ name }) =>
        `etcd on ${name} does not answer; see crictl logs there, then run the command again`,
    ),
    ...etcdProblems(answers).map(({ found, cure }) => `${found}; ${cure}`),
  ];
}

/** Runs a script on each control-plane host. Resolves with the output of the script on each host. */
async function onControlPlane(
  { manifest, shells }: KubeadmSession,
  script: string,
): Promise<string[]> {
  return await onAll(
    controlPlaneOf(manifest),
    async (host) => await outputOn(host, script, shells),
  );
}

export interface RestoreOptions {
  readonly snapshot: string;
  /** A text that identifies this restore. It is part of the new cluster's name and of the folder with the old data of each member. */
  readonly stamp: string;
}

type RestorePart = 'facts' | 'restore_aside' | 'stop' | 'start_etcd' | 'start_api_server';

function restoreScript(part: RestorePart, options: RestoreOptions, members: string): string {
  const { snapshot, stamp } = options;
  const values = { SNAPSHOT: snapshot, STAMP: stamp, MEMBERS: members, DO: part };
  return filledScript('restore-etcd.sh', values);
}

/**
 * Returns a script that prints `SHA256 NAME=URL`, with the hash of the snapshot and the name and URL of the member. If
 * a restore is not possible, the script prints the reason instead. The script changes nothing.
 */
export function restoreFactsScript(options: RestoreOptions): string {
  return restoreScript('facts', options, '');
}

/**
 * Returns the scripts of the restore in the order in which they must run. Each script must have ended on all hosts
 * before the next script starts. `members` has the form of etcd's flag `--initial-cluster`.
 */
export function restoreScripts(
  options: RestoreOptions,
  members: string,
): Readonly<Record<string, string>> {
  const script = (part: RestorePart): string => detached(restoreScript(part, options, members), 5);
  return {
    'Restoring the snapshot next to the data in use': script('restore_aside'),
    'Stopping the API server and etcd': script('stop'),
    'Starting etcd with the restored data': script('start_etcd'),
    'Starting the API server': script('start_api_server'),
  };
}
