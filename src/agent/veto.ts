/**
 * Checks downloads and versions against the agent's own rules, from its flags. No Plan, policy or annotation overrides
 * them.
 */
import { portOf } from '../http/proxy-choice.ts';
import type { SignalCommand, SignalData } from '../signal/annotations.ts';
import { isKeptFileUrl } from '../signal/kept-file.ts';
import { rfc3339 } from '../util/clock.ts';
import { formatDuration } from '../util/duration.ts';
import { compareVersions, parseVersion } from '../util/version.ts';

export interface Veto {
  readonly requireSha256: boolean;
  readonly requireHttps: boolean;
  /** If true, a download requires neither https nor a sha256. k0s's own agent requires neither of them. */
  readonly allowUnverified: boolean;
  /** Each entry is `host`, `host:port`, or `*.domain`. If it is undefined, any host is allowed. */
  readonly allowedHosts: readonly string[] | undefined;
  readonly lowestVersion: string | undefined;
  readonly refuseDowngrade: boolean;
  /** If true, the agent ignores what the kubelet's configuration says about cgroup v1. */
  readonly allowCgroupV1?: boolean;
  /** The maximum age of a new signal in milliseconds. 0 means no limit. */
  readonly maxSignalAgeMs: number;
}

/** Returns why the command is refused; undefined if it is allowed. `running` is the version that it would replace. */
export function vetoOf(
  command: SignalCommand,
  running: string | undefined,
  veto: Veto,
): string | undefined {
  const address = new URL(command.url);
  const scheme = address.protocol.slice(0, -1);
  const isHttps = scheme === 'https';
  // Guard require-hash. The owner of the host requires a hash.
  if (command.sha256 === undefined && veto.requireSha256)
    return 'this agent requires a sha256, and the plan names none: add it there, or start the agent without --require-sha256';
  // Guard require-https. The owner of the host requires https.
  if (!isHttps && veto.requireHttps)
    return `this agent requires https, and the plan has a URL with ${scheme}: change it there, or start the agent without --require-https`;
  // Guard unverified. By default a download needs a hash or https.
  if (command.sha256 === undefined && !isHttps && !veto.allowUnverified)
    return `a download over ${scheme} needs a sha256: add it to the plan, or start the agent with --unverified-downloads allow`;
  // The address of a kept file leads to no host, so it is allowed whatever hosts are allowed.
  const isKept = command.kind === 'k0supdate' && isKeptFileUrl(command.url);
  const wrongHost = isKept ? undefined : hostVeto(address, veto.allowedHosts);
  if (wrongHost !== undefined) return wrongHost;
  return command.kind === 'airgapupdate' ? undefined : versionVeto(command.version, running, veto);
}

/**
 * Returns why nothing may be downloaded from this address; undefined if it is allowed. It is also called for each
 * redirect.
 */
export function hostVeto(address: URL, allowed: Veto['allowedHosts']): string | undefined {
  const isAllowed = (entry: string): boolean =>
    [address.hostname, `${address.hostname}:${portOf(address)}`].includes(entry) ||
    (entry.startsWith('*.') && address.hostname.endsWith(entry.slice(1)));
  // Guard allowed-hosts. The owner of the host chooses the servers.
  if (allowed === undefined || allowed.some(isAllowed)) return undefined;
  return `this agent downloads nothing from ${address.host}, only from ${allowed.join(', ')} (--allowed-hosts)`;
}

function versionVeto(version: string, running: string | undefined, veto: Veto): string | undefined {
  const bounds = [
    { bound: veto.lowestVersion, name: 'the lowest version that this agent accepts' },
    { bound: veto.refuseDowngrade ? running : undefined, name: 'the running version' },
  ];
  for (const { bound, name } of bounds) {
    if (bound === undefined) continue;
    const wanted = parseVersion(version);
    const lowest = parseVersion(bound);
    if (wanted === undefined || lowest === undefined)
      return `cannot compare the version ${version} with ${bound}, ${name}: use a version such as v1.36.3+k0s.0`;
    // Guard version-bounds. The owner of the host chooses the lowest version.
    if (compareVersions(wanted, lowest) < 0)
      return `${version} is below ${bound}, ${name}: use that version or a newer one`;
  }
  return undefined;
}

/**
 * Returns the message that a new signal is too old; undefined if the signal is not too old. `now` is in milliseconds
 * since the Unix epoch.
 */
export function ageVeto(
  { created }: SignalData,
  now: number,
  { maxSignalAgeMs }: Veto,
): string | undefined {
  if (maxSignalAgeMs === 0) return undefined;
  const age = now - Date.parse(created);
  if (Number.isNaN(age))
    return `the field "created" of the signal is "${created}", which is not a time`;
  if (age <= maxSignalAgeMs) return undefined;
  return `the signal was created at ${created}, more than ${formatDuration(maxSignalAgeMs)} before ${clockText(now)}`;
}

/**
 * Returns a message if a new signal was created more than `maxSignalAgeMs` after the current time of this host, which
 * means that the host's clock may be wrong. Otherwise returns undefined. A limit of 0 also returns undefined.
 */
export function futureVeto(
  { created }: SignalData,
  now: number,
  { maxSignalAgeMs }: Veto,
): string | undefined {
  if (maxSignalAgeMs === 0 || !(Date.parse(created) - now > maxSignalAgeMs)) return undefined;
  return `the signal was created at ${created}, more than ${formatDuration(maxSignalAgeMs)} after ${clockText(now)}`;
}

function clockText(now: number): string {
  return `${rfc3339(now)}, the time on this host's clock`;
}
