/**
 * Writes the report of an upgrade: which command ran on which host, how long each step took, and the versions before
 * and after. The report is JSON for programs, or Markdown for people.
 */
import { writeFile } from 'node:fs/promises';
import { md } from '../../../cli/report/markdown-tag.ts';
import { Markup } from '../../../cli/report/markup.ts';
import { formatDuration } from '../../../util/duration.ts';
import { messageOf, RefitError } from '../../../util/errors.ts';
import { ownMember } from '../../../util/own-member.ts';
import { describeFinding, type Finding } from '../../../versions/findings.ts';
import type { Host } from '../host/host.ts';
import type { HostFacts } from '../host/probe.ts';
import type { Check } from '../host/verify.ts';
import { reportOn } from '../plan/kubeadm-signal.ts';
import { sourceOfPlan } from '../plan/plan-object.ts';
import { type HostAssessment, hostsOf, type Survey } from '../plan/preflight.ts';
import type { ClusterState } from './verify.ts';

/** The JSON form of the report. */
export interface UpgradeReport {
  readonly version: string;
  /** True if the hosts go back to an older version; absent for an upgrade. */
  readonly back?: boolean;
  readonly digest: string;
  readonly outcome: Ended['outcome'];
  /** The start of the upgrade in RFC 3339. */
  readonly began: string;
  /** The end of the upgrade in RFC 3339. */
  readonly ended: string;
  readonly hosts: readonly ReportedHost[];
  readonly findings: readonly Finding[];
  /** The checks after the upgrade. `of` is a host or `cluster`. */
  readonly checks: readonly (Check & { readonly of: string })[];
}

export interface ReportedHost {
  readonly name: string;
  readonly role: Host['role'];
  /** The command that upgraded the host; undefined if the plan does not change the host. */
  readonly command: string | undefined;
  readonly before: Versions;
  /** The versions after the upgrade; undefined if the host did not answer afterwards. */
  readonly after: Versions | undefined;
  readonly state: string;
  readonly message: string | undefined;
  /** The milliseconds that each step took. */
  readonly spent: Readonly<Record<string, number>>;
}

/** The version of each component by its name; undefined for a component whose version is unknown. */
type Versions = Readonly<Record<string, string | undefined>>;

export interface Ended {
  readonly outcome: 'planned' | 'refused' | 'nothing to do' | 'done' | 'failed';
  /** The start of the upgrade in RFC 3339. */
  readonly began: string;
  readonly ended: string;
  readonly survey: Survey;
  readonly assessment: HostAssessment;
  readonly state: ClusterState | undefined;
}

export function reportOf({ survey, assessment, state, ...times }: Ended): UpgradeReport {
  const { request, findings, digest } = assessment;
  const resumed = assessment.resumes && survey.plan && sourceOfPlan(survey.plan).uid;
  const wanted = new Set([...request.certificates, ...hostsOf(request)]);
  const hosts = survey.hosts.map((before): ReportedHost => {
    const { name, role } = before.host;
    const node = wanted.has(name)
      ? state?.nodes?.find(({ metadata }) => metadata.name === name)
      : undefined;
    const said = reportOn(node);
    // The Node may still have the report of an earlier run. So the rollout in the report is compared with the rollout
    // of this run.
    const found =
      said?.rollout === resumed || (said?.attempt ?? '') >= times.began ? said : undefined;
    // The kubelets of the hosts in `request.kubelets` are upgraded later. Each of these kubelets is a separate target.
    const isLater = request.kubelets.includes(name) && found?.target !== `kubelets/${name}`;
    const verb = request.leader.includes(name) ? `apply ${request.version}` : 'node';
    const command = request.certificates.includes(name)
      ? 'kubeadm certs renew'
      : `kubeadm upgrade ${verb}`;
    const isUnknown = state && !state.nodes;
    const open = isUnknown ? 'unknown' : 'not started';
    const unsaid = wanted.has(name) ? open : 'already there';
    const after = state?.facts.find(({ host }) => host.name === name);
    return {
      name,
      role,
      command: wanted.has(name) ? command : undefined,
      before: versionsOf(before),
      after: after && versionsOf(after),
      state:
        isLater && found?.state === 'finished' ? 'kubelet not started' : (found?.state ?? unsaid),
      message: found?.message,
      spent: found?.spent ?? {},
    };
  });
  const checks = [...(state?.checks ?? [])].flatMap(([of, own]) =>
    own.map((check) => ({ of, ...check })),
  );
  const { version, back } = request;
  return { version, ...(back && { back }), digest, ...times, hosts, findings, checks };
}

function versionsOf({ kubeadm, kubelet, staticPods }: HostFacts): Versions {
  return { kubeadm, kubelet, ...staticPods };
}

/**
 * Writes Markdown if the name of the file ends with `.md`, otherwise JSON. If `report` is undefined, only checks that
 * the file can be written.
 * @throws RefitError REFIT_FILE
 */
export async function writeReport(file: string, report?: UpgradeReport): Promise<void> {
  const text =
    report && (file.endsWith('.md') ? markdownOf(report) : `${JSON.stringify(report, null, 2)}\n`);
  await writeFile(file, text ?? '', { flag: text === undefined ? 'a' : 'w' }).catch(
    (error: unknown) => {
      throw new RefitError('REFIT_FILE', `cannot write ${file}: ${messageOf(error)}`, {
        cause: error,
      });
    },
  );
}

export function markdownOf({
  version,
  back,
  digest,
  outcome,
  began,
  ended,
  hosts,
  findings,
  checks,
}: UpgradeReport): string {
  const took = formatDuration(Math.max(0, Date.parse(ended) - Date.parse(began)));
  const rows = hosts.map(({ name, role, before, after, state, message, spent }) => {
    const times = Object.entries(spent).map(([step, ms]) => `${step} ${formatDuration(ms)}`);
    const versions = Object.entries(before).map(([component, from = 'unknown']) => {
      const to = ownMember(after, component) ?? 'unknown';
      return `${component} ${from}${from === to ? '' : ` → ${to}`}`;
    });
    return [
      name,
      role,
      message ? `${state}: ${message}` : state,
      versions.join(', '),
      times.join(', '),
    ];
  });
  const found = checks.map(({ of, component, found: what, cure = 'well' }) => [
    of,
    component,
    what,
    cure,
  ]);
  const warned = findings.map((finding) => [
    finding.severity,
    finding.rule,
    describeFinding(finding),
  ]);
  const parts = [
    md`# ${back === true ? 'Roll-back' : 'Upgrade'} to ${version}: ${outcome}`,
    md`From ${began} to ${ended}, ${took}. Digest of the plan: ${digest}.`,
    tableOf(['host', 'role', 'state', 'versions', 'time'], rows),
    ...(found.length > 0
      ? [md`## Found at the end`, tableOf(['of', 'component', 'found', 'to do'], found)]
      : []),
    ...(warned.length > 0
      ? [md`## Findings before`, tableOf(['severity', 'rule', 'finding'], warned)]
      : []),
  ];
  return `${Markup.lines(parts, '\n\n').toString()}\n`;
}

function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): Markup {
  const line = (cells: readonly string[]): Markup =>
    cells.reduce((row, cell) => md`${row} ${cell} |`, md`|`);
  return Markup.lines([line(head), line(head.map(() => '---')), ...rows.map(line)]);
}
