/** Versions of a cluster as the version rules read them, and the verdict as one word. */
import type { Finding } from '../../../src/versions/findings.ts';
import type { KubeletFacts, VersionFacts } from '../../../src/versions/kubeadm-rules.ts';
import { judgeVersions } from '../../../src/versions/version-rules.ts';

/** The verdict. The strictest finding decides it. */
type Word = 'yes' | 'no' | 'force' | 'warn';

const WORDS: Readonly<Record<Finding['severity'], Word>> = {
  hard: 'no',
  force: 'force',
  warn: 'warn',
};

export function said(facts: VersionFacts): string {
  const findings = judgeVersions(facts);
  for (const severity of ['hard', 'force', 'warn'] as const) {
    const rules = findings
      .filter((finding) => finding.severity === severity)
      .map(({ rule }) => rule);
    if (rules.length > 0) return `${WORDS[severity]} ${[...new Set(rules)].join(' ')}`;
  }
  return 'yes';
}

/** Returns a full version. A version of two numbers gets the patch 0, because the patch does not matter. */
const full = (version: string): string => (/^v?\d+\.\d+$/.test(version) ? `${version}.0` : version);
export const to = (
  from: readonly string[],
  target: string,
  more: Partial<VersionFacts> = {},
): VersionFacts => ({
  apiServers: from.map(full),
  target: full(target),
  ...more,
});
export const kubelet = (
  version: string,
  apiServers: readonly string[],
  more: Partial<KubeletFacts> = {},
): VersionFacts => {
  const { target, apiServer, ...rest } = more;
  const facts = {
    version: full(version),
    ...(target && { target: full(target) }),
    ...(apiServer && { apiServer: full(apiServer) }),
  };
  return { apiServers: apiServers.map(full), kubelets: [{ ...facts, ...rest }] };
};
export const controller = (
  name: string,
  version: string,
  apiServers: readonly string[],
  apiServer?: string,
): VersionFacts => ({
  apiServers: apiServers.map(full),
  controllers: [{ name, version: full(version), ...(apiServer && { apiServer: full(apiServer) }) }],
});
export const apply = (
  version: string | undefined,
  cluster: string,
  target: string,
): VersionFacts => ({
  apiServers: [],
  target,
  kubeadm: { verb: 'apply', cluster, ...(version && { version }) },
});
export const node = (
  version: string,
  more: { cluster?: string; managedBy?: string },
): VersionFacts => ({
  apiServers: [],
  target: version,
  kubeadm: { verb: 'node', version, ...more },
});
export const etcd = (members: readonly string[], target: string): VersionFacts => ({
  apiServers: [],
  etcd: { members, target },
});
export const host = (target: string, facts: NonNullable<VersionFacts['node']>): VersionFacts => ({
  apiServers: [],
  target: full(target),
  node: facts,
});
