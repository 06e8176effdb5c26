/**
 * Implements `refit kubeadm plan` and `refit kubeadm apply`: surveys the cluster, shows the plan, asks the user, and carries
 * the plan out.
 */
import { isConfirmed } from '../../../cli/confirm.ts';
import { plainErrors, standardOutput } from '../../../cli/output.ts';
import { table, wrappedLines } from '../../../cli/phrases.ts';
import { kubeletVersionOf } from '../../../kube/resources.ts';
import { describeProblem } from '../../../kube/status-error.ts';
import { listNodes } from '../../../kube/trimmed.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { EXIT, RefitError } from '../../../util/errors.ts';
import { defined, sameJson } from '../../../util/json.ts';
import { describeFinding, type Finding } from '../../../versions/findings.ts';
import { attempt, type Host, saidBy } from '../host/host.ts';
import type { HostFacts } from '../host/probe.ts';
import { diffScript, EXIT_BUSY, optionsFor, repairScript } from '../host/scripts.ts';
import type { Request } from '../plan/plan-object.ts';
import * as preflight from '../plan/preflight.ts';
import { nodeNamed } from '../plan/survey-nodes.ts';
import { afterHosts, stageLines } from './after-hosts.ts';
import { reportOf, type UpgradeReport, writeReport } from './report.ts';
import { carryOut, removeLeftLabels } from './run-upgrade.ts';
import {
  type ApplySession,
  inSession,
  type KubeadmApplyFlags,
  type KubeadmFlags,
  type KubeadmSession,
  probeAll,
  surveyCluster,
  throughOutages,
} from './upgrade-session.ts';
import { type ClusterState, checkCluster, isRight, verifyCluster } from './verify.ts';

const LATER = 'kubelet, once every API server has the version';
/** The sentences that tell the user what a roll-back to the older patch changes and what it keeps. */
const LOST = [
  'Lost: what the newer patch corrected, security fixes included. Objects in etcd are kept.',
  'Not changed: containerd, everything that kubeadm does not manage, and etcd if it is newer than the etcd of the old kubeadm.',
];
const GOES_ON = 'has begun: it continues where it stopped.';
const ENDS =
  'The next run finishes the hosts that have begun and ends this plan; the run after it starts a new one.';

/** The most milliseconds to wait until CoreDNS and kube-proxy have rolled out. */
const ROLLED_OUT_MS = 300_000;
const DIFF_MS = 60_000;
/**
 * Matches a removed line of a unified diff. Lines with images or with Refit's own annotation do not match, because each
 * upgrade changes them.
 */
const LOST_LINE = /^-(?!-- )(?! *(image|annotations|upgrade\.refit\.dev\/certificates):)/m;

/**
 * Shows what an upgrade would do, and changes nothing. Resolves with the exit code; rejects with REFIT_REFUSED if a rule
 * forbids the upgrade.
 */
export async function planKubeadm(flags: KubeadmFlags, abort: AbortSignal): Promise<number> {
  return await inSession(flags, abort, async (session) => {
    const hosts = await probeAll(session);
    for (const line of repairLines(hosts)) session.output.write(`${line}\n`);
    const isMissing = hosts.some(({ missing }) =>
      missing.some(({ name }) => name === 'kube-apiserver'),
    );
    try {
      const survey = isMissing
        ? surveyCluster(session, hosts)
        : throughOutages(session, surveyCluster, hosts);
      const shown = await show(session, await survey);
      await showDiff(session, shown.assessment);
      const isDone = isNothing(shown.assessment);
      const state = isDone ? await verifyCluster(session, 0) : undefined;
      await tell(session, shown, isDone ? 'nothing to do' : 'planned', state);
    } catch (error) {
      if (!isMissing || describeProblem(error).code !== 'REFIT_UNREACHABLE') throw error;
      session.output.write(
        'The API server does not answer without that manifest: restore it first.\n',
      );
    }
    return EXIT.ok;
  });
}

/**
 * Prints how the upgrade would change the manifests of static pods. Prints nothing if the first control-plane host does
 * not have kubeadm of the target version yet. The plan is valid without these changes.
 */
async function showDiff(
  { manifest, shells, output }: KubeadmSession,
  { request }: preflight.HostAssessment,
) {
  const host = manifest.hosts.find(({ name }) => name === request.leader[0]);
  if (!host) return;
  const { patches, config } = optionsFor(manifest, host);
  const without = (patches ?? config) === undefined ? '' : ', without the patches';
  const { code, stdout } = await attempt(shells.run(host, diffScript(manifest, host), DIFF_MS));
  if (stdout !== '')
    output.write(
      `kubeadm upgrade diff on ${host.name}${without}${code === 0 ? '' : ' failed'}:\n${stdout}\n`,
    );
  if (without === '' && LOST_LINE.test(stdout))
    output.write(
      'The upgrade removes lines from manifests. If patches added these lines, set kubeadm.patches in the manifest; otherwise they are lost.\n',
    );
}

/**
 * Upgrades the cluster. Resolves with the exit code: 0 if the upgrade is done or not needed, 1 if anything failed or
 * the user did not answer yes.
 */
export async function applyKubeadm(flags: KubeadmApplyFlags, abort: AbortSignal): Promise<number> {
  // Checks the report file before the upgrade. A report that cannot be written would be lost, because nobody repeats an
  // upgrade only to get its report.
  if (flags.report !== undefined) await writeReport(flags.report);
  return await inSession(flags, abort, async (session) => {
    const { output } = session;
    const hosts = await probeAll(session);
    for (const line of repairLines(hosts)) output.write(`${line}\n`);
    const isBroken = hosts.some(({ missing }) =>
      missing.some(({ backup }) => backup !== 'refused'),
    );
    if (isBroken && !(await repair(hosts, session))) return EXIT.failed;
    const survey = await throughOutages(session, surveyCluster, isBroken ? undefined : hosts);
    const shown = await show(session, survey);
    const { request, digest, aborted, toRoll, toApply } = shown.assessment;
    if (isNothing(shown.assessment)) {
      await removeLeftLabels(session, survey.nodes);
      return await tell(session, shown, 'nothing to do', await verifyCluster(session, 0));
    }
    const other = `--digest: found ${flags.digest}, but this plan has ${digest}: look at it with refit kubeadm plan, then agree to it again`;
    if (flags.digest !== undefined && flags.digest !== digest)
      throw new RefitError('REFIT_REFUSED', other);
    const upgrade = questionOf(request, toApply.length, toRoll.length);
    if (!(await confirm(aborted === undefined ? upgrade : 'End the aborted plan?', session)))
      return EXIT.failed;
    if (isHostsDone(shown.assessment)) {
      await removeLeftLabels(session, survey.nodes);
      return await finish(session, shown);
    }
    const decide = async (): Promise<preflight.HostAssessment> => {
      const now = preflight.assessHosts(await surveyCluster(session, await probeAll(session)));
      stopOn(now);
      const isSame =
        flags.digest === undefined ? sameJson(now.request, request) : now.digest === digest;
      if (isNothing(now) || isSame) return now;
      throw new RefitError(
        'REFIT_REFUSED',
        'the plan has changed since it was shown: run the command again',
      );
    };
    const found = survey.hosts.find(({ host }) => host.role === 'controlPlane')?.apiPort;
    const own = defined({ ...flags, apiPort: flags.apiPort ?? found });
    const code = await throughOutages(
      session,
      async () => await carryOut({ ...session, flags: own }, decide),
    );
    if (code === EXIT.ok) return await finish(session, shown);
    if (code === EXIT.failed) await tell(session, shown, 'failed');
    return code;
  });
}

/** A plan that the user has seen. */
interface Shown {
  readonly survey: preflight.Survey;
  readonly assessment: preflight.HostAssessment;
  /** The time of the survey in RFC 3339. */
  readonly began: string;
}

/**
 * Verifies the cluster, and then applies addons and upgrades MachineDeployments. Stops after the verification if it
 * finds a problem.
 */
async function finish(session: ApplySession, shown: Shown): Promise<number> {
  const state = await verifyCluster(session, ROLLED_OUT_MS);
  const after = isRight(state) ? await afterHosts(session, shown.assessment) : [];
  for (const note of shown.survey.addons.flatMap(({ notes }) => notes))
    session.output.write(`addon ${note}\n`);
  return await tell(session, shown, 'done', {
    ...state,
    checks: new Map([...state.checks, ...after]),
  });
}

/**
 * Prints JSON and writes a report file, if the options ask for them. For a refused plan, it writes no report. Resolves
 * with the exit code.
 */
async function tell(
  session: KubeadmSession,
  shown: Shown,
  outcome: UpgradeReport['outcome'],
  state?: ClusterState,
) {
  const { manifest, later, output, flags } = session;
  const isWanted = flags.output === 'json' || flags.report !== undefined;
  const seen =
    state ?? (isWanted && outcome === 'failed' ? await checkCluster(session) : undefined);
  const isBad = outcome === 'failed' || (state !== undefined && !isRight(state));
  if (!isBad && outcome !== 'refused' && later.length > 0)
    output.write(
      `After ${manifest.version} comes ${later.join(', then ')}: run the command again for each.\n`,
    );
  const end = isBad && outcome === 'done' ? 'failed' : outcome;
  const report = reportOf({
    ...shown,
    outcome: end,
    ended: rfc3339(session.clock.now()),
    state: seen,
  });
  if (flags.output === 'json') standardOutput.write(`${JSON.stringify(report, null, 2)}\n`);
  if (flags.report !== undefined && outcome !== 'refused') await writeReport(flags.report, report);
  return isBad ? EXIT.failed : EXIT.ok;
}

export function isNothing(assessment: preflight.HostAssessment): boolean {
  return isHostsDone(assessment) && assessment.toRoll.length + assessment.toApply.length === 0;
}

function isHostsDone({ request, resumes }: preflight.HostAssessment): boolean {
  return preflight.isEmpty(request) && !resumes;
}

export function questionOf(request: Request, addons: number, pools: number): string {
  const hosts = preflight.hostsOf(request).length;
  const after = [`${addons} addons`, `${pools} MachineDeployments`].filter(
    (each) => !each.startsWith('0 '),
  );
  const then = after.length > 0 ? `, then ${after.join(' and ')}` : '';
  const verb = request.back ? 'Roll back' : 'Upgrade';
  const upgrade =
    hosts > 0 || then !== '' ? [`${verb} ${hosts} hosts to ${request.version}${then}`] : [];
  const renewal = request.certificates.map((name) => `Renew the certificates of ${name}`);
  return `${[...renewal, ...upgrade].join('. ')}?`;
}

async function show(session: KubeadmSession, survey: preflight.Survey): Promise<Shown> {
  const { output, clock } = session;
  const shown = { survey, assessment: preflight.assessHosts(survey), began: rfc3339(clock.now()) };
  const { columns } = output.size();
  for (const line of [
    ...planLines(survey, shown.assessment, columns),
    ...stageLines(survey, shown.assessment, columns),
  ])
    output.write(`${wrappedLines(line, columns)}\n`);
  if (session.stay !== '') output.write(`${session.stay}\n`);
  if (refusedIn(shown.assessment).length > 0) await tell(session, shown, 'refused');
  stopOn(shown.assessment);
  output.write(
    isNothing(shown.assessment)
      ? 'Nothing to do.\n'
      : `Digest of this plan: ${shown.assessment.digest}\n`,
  );
  return shown;
}

function refusedIn({ findings }: Pick<preflight.HostAssessment, 'findings'>): Finding[] {
  return findings.filter(({ severity }) => severity !== 'warn');
}

function stopOn(assessment: Pick<preflight.HostAssessment, 'findings'>): void {
  const refused = refusedIn(assessment);
  if (refused.length === 0) return;
  throw new RefitError('REFIT_REFUSED', '', {
    problems: refused.map((finding) => `${finding.rule}: ${describeFinding(finding)}`),
    hint: 'correct what each line names, then run the plan again',
  });
}

async function confirm(question: string, session: ApplySession): Promise<boolean> {
  return (
    session.flags.yes || (await ask(question, session, 'there is no terminal to ask: pass --yes'))
  );
}

/**
 * Asks the user, even with `--yes`. Only a person can decide whether a backup is the right backup, and which data may
 * be lost.
 */
export async function confirmInPerson(question: string, session: KubeadmSession): Promise<boolean> {
  return await ask(
    question,
    session,
    `${question} Only a person can answer this: run the command in a terminal`,
  );
}

async function ask(
  question: string,
  { output, abort }: KubeadmSession,
  unasked: string,
): Promise<boolean> {
  const screen = output === plainErrors ? process.stderr : process.stdout;
  if (await isConfirmed(question, { unasked, abort, screen })) return true;
  output.write('Nothing was changed.\n');
  return false;
}

/**
 * Restores missing manifests on the hosts. Resolves with false if the user did not agree. Does not acquire the lock,
 * because the API server that stores the Lease may be down.
 */
async function repair(hosts: readonly HostFacts[], session: ApplySession): Promise<boolean> {
  const { client, manifest, abort } = session;
  // If the API server is down, the hosts are not compared with the Nodes. The role of a host is then determined only
  // from the files on the host.
  const list = await listNodes(client, { abort }).catch(() => undefined);
  if (list) stopOn({ findings: preflight.membershipFindings({ manifest, nodes: list.items }) });
  const broken = hosts.filter(({ missing }) => missing.some(({ backup }) => backup === 'run'));
  if (broken.length > 0 && !(await confirm('Restore the manifests from their backups?', session)))
    return false;
  for (const { host } of broken) await restore(host, session);
  for (const { host, missing } of hosts) {
    for (const { name, backup, detail } of missing) {
      if (backup !== 'hand') continue;
      const question = `${host.name}: no journal of Refit belongs to this backup. Restore ${name}.yaml from ${detail}?`;
      if (!(await confirmInPerson(question, session))) return false;
      await restore(host, session, detail);
    }
  }
  return true;
}

async function restore(
  host: Host,
  { shells, output }: KubeadmSession,
  byHand?: string,
): Promise<void> {
  const result = await shells.run(host, repairScript(byHand));
  // A step of an earlier run is still running on this host. That step restores the manifests.
  if (result.code === EXIT_BUSY) return;
  const failed = `${host.name}: the manifests cannot be restored: ${saidBy(result)}`;
  if (result.code !== 0) throw new RefitError('REFIT_REFUSED', failed);
  for (const line of result.stdout.trim().split('\n')) output.write(`${host.name}: ${line}\n`);
}

export function planLines(
  survey: preflight.Survey,
  assessment: preflight.HostAssessment,
  width = Number.POSITIVE_INFINITY,
): string[] {
  const { request, resumes, aborted, findings, stays = new Map<string, string>() } = assessment;
  const { manifest, hosts } = survey;
  const versionOf = (name: string) => kubeletVersionOf(nodeNamed(name, survey.nodes)) ?? 'unknown';
  const change = (name: string): string => `${versionOf(name)} → ${request.version}`;
  const renewed = hosts.filter(({ host }) => request.certificates.includes(host.name));
  const controlPlane = [
    ...renewed.map(({ host }) => [
      host.name,
      'control plane',
      versionOf(host.name),
      'kubeadm certs renew',
    ]),
    ...request.leader.map((name) => [
      name,
      'leader',
      change(name),
      `kubeadm upgrade apply ${request.version}`,
    ]),
    ...request.followers.map((name) => [name, 'follower', change(name), 'kubeadm upgrade node']),
    ...request.kubelets.map((name) => [name, 'control plane', change(name), LATER]),
  ];
  const workers = request.workers.map((name) => [
    name,
    'worker',
    change(name),
    'kubeadm upgrade node',
  ]);
  const rows = request.back ? [...workers, ...controlPlane] : [...controlPlane, ...workers];
  const upgraded = preflight.hostsOf(request);
  const left = manifest.hosts
    .map(({ name }) => name)
    .filter((name) => !upgraded.includes(name) && !stays.has(name));
  const kind = request.back ? 'A roll-back' : 'An upgrade';
  const begun = upgraded.length > 0 ? `${kind} to ${request.version}` : 'A renewal of certificates';
  return [
    ...(resumes
      ? [`${begun} ${aborted === undefined ? GOES_ON : `was aborted: ${aborted}. ${ENDS}`}`]
      : []),
    ...(rows.length > 0 ? [...table(['HOST', 'ROLE', 'VERSION', 'COMMAND'], rows, width), ''] : []),
    ...[...stays].map(([name, why]) => `not changed: ${name} ${why}`),
    ...(left.length > 0 && !resumes ? [`Already at ${request.version}: ${left.join(', ')}`] : []),
    ...(upgraded.length > 0 ? procedureLines(survey, request) : []),
    ...renewed.map(({ host, toRenew = [] }) => {
      const why =
        toRenew.length > 0
          ? `: ${toRenew.join(', ')}`
          : ', because the last run did not finish this step';
      return `${host.name} restarts its static pods with new certificates${why}`;
    }),
    ...findings.map(
      (finding) =>
        `${finding.severity === 'warn' ? 'warning' : 'refused'} ${finding.rule}: ${describeFinding(finding)}`,
    ),
  ];
}

/**
 * Returns sentences about missing manifests. They are printed before the first request to the API server, because the
 * manifest of the API server itself may be missing.
 */
export function repairLines(hosts: readonly HostFacts[]): string[] {
  return hosts.flatMap(({ host, missing }) =>
    missing.map(({ name, backup, detail }) => {
      if (backup === 'refused')
        return `${host.name}: ${preflight.describeRefused(name, detail)}; ${preflight.BY_HAND}`;
      const who =
        backup === 'run' ? 'an interrupted kubeadm' : 'a kubeadm that Refit did not start';
      return `${host.name}: ${who} removed ${name}.yaml; to restore: ${detail}`;
    }),
  );
}

function procedureLines(
  { policy, manifest }: preflight.Survey,
  { concurrent, back }: Request,
): string[] {
  const { name, drain } = policy;
  const approval =
    'Requests of kubelets for serving certificates are approved, if manifest and host confirm them.';
  const runtime = `On hosts with another version of containerd, ${manifest.containerd?.version} is installed before the kubelet; no container is restarted.`;
  const more = [
    ...(manifest.containerd ? [runtime] : []),
    ...(manifest.approveServingCertificates ? [approval] : []),
  ];
  const few = `${concurrent} at a time`;
  const order = back
    ? `Workers, ${few}, then control-plane hosts one at a time.`
    : `Control-plane hosts one at a time, then workers, ${few}.`;
  const undrained = [
    `${order} On each host: stage the binaries, run kubeadm, replace and restart the kubelet, verify.`,
    `Pods stay where they are: UpgradePolicy ${name} says that nodes are neither cordoned nor drained.`,
  ];
  const drained = [
    `${order} On each host: stage the binaries, cordon, evict its pods, run kubeadm,`,
    'replace and restart the kubelet, verify, uncordon what Refit cordoned.',
  ];
  return [...(drain.enabled ? drained : undrained), ...more, ...(back ? LOST : [])];
}
