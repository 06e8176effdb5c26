/** The agent's own rules for downloads and versions, from its flags: no Plan, policy or annotation overrides them. */
import { portOf } from '../http/proxy-choice.ts';
import type { SignalCommand, SignalData } from '../signal/annotations.ts';
import { rfc3339 } from '../util/clock.ts';
import { formatDuration } from '../util/duration.ts';
import { compareVersions, parseVersion } from '../util/version.ts';

export interface Veto {
  readonly requireSha256: boolean;
  readonly requireHttps: boolean;
  /** True: a download may have neither https nor a sha256, as for the original. */
  readonly allowUnverified: boolean;
  /** `host`, `host:port`, or `*.domain`; undefined: any. */
  readonly allowedHosts: readonly string[] | undefined;
  readonly lowestVersion: string | undefined;
  readonly refuseDowngrade: boolean;
  /** True: what the kubelet's configuration says about cgroup v1 does not count. */
  readonly allowCgroupV1?: boolean;
  /** Limit for the age of a new signal in milliseconds; 0: none. */
  readonly maxSignalAgeMs: number;
}

/** Why the command is refused; undefined when it is allowed. `running` is the version that it would replace. */
export function vetoOf(
  command: SignalCommand,
  running: string | undefined,
  veto: Veto,
): string | undefined {
  const address = new URL(command.url);
  const scheme = address.protocol.slice(0, -1);
  const isHttps = scheme === 'https';
  if (command.sha256 === undefined && veto.requireSha256)
    return 'this agent requires a sha256, and the plan names none: add it there, or start the agent without --require-sha256';
  if (!isHttps && veto.requireHttps)
    return `this agent requires https, and the plan has a URL with ${scheme}: change it there, or start the agent without --require-https`;
  if (command.sha256 === undefined && !isHttps && !veto.allowUnverified)
    return `a download over ${scheme} needs a sha256: add it to the plan, or start the agent with --unverified-downloads allow`;
  const wrongHost = hostVeto(address, veto.allowedHosts);
  if (wrongHost !== undefined) return wrongHost;
  return command.kind === 'airgapupdate' ? undefined : versionVeto(command.version, running, veto);
}

/** Why nothing may be downloaded from there; also asked about each redirect. */
export function hostVeto(address: URL, allowed: Veto['allowedHosts']): string | undefined {
  const isAllowed = (entry: string): boolean =>
    [address.hostname, `${address.hostname}:${portOf(address)}`].includes(entry) ||
    (entry.startsWith('*.') && address.hostname.endsWith(entry.slice(1)));
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
      return `cannot compare ${version} with ${bound}, ${name}: use for example v1.36.3+k0s.0`;
    if (compareVersions(wanted, lowest) < 0)
      return `${version} is below ${bound}, ${name}: use that or a newer one`;
  }
  return undefined;
}

/** Why a new signal is not obeyed; `now` is wall-clock milliseconds. */
export function ageVeto(
  { created }: SignalData,
  now: number,
  { maxSignalAgeMs }: Veto,
): string | undefined {
  if (maxSignalAgeMs === 0) return undefined;
  const age = now - Date.parse(created);
  if (Number.isNaN(age)) return `the signal's created "${created}" is not a time`;
  if (age <= maxSignalAgeMs) return undefined;
  return `the signal was created at ${created}, longer than ${formatDuration(maxSignalAgeMs)} before ${clockText(now)}`;
}

/** Why a new signal cannot be from the time that the host's clock shows: that clock may be wrong. */
export function futureVeto(
  { created }: SignalData,
  now: number,
  { maxSignalAgeMs }: Veto,
): string | undefined {
  if (maxSignalAgeMs === 0 || !(Date.parse(created) - now > maxSignalAgeMs)) return undefined;
  return `the signal was created at ${created}, longer than ${formatDuration(maxSignalAgeMs)} after ${clockText(now)}`;
}

function clockText(now: number): string {
  return `${rfc3339(now)}, which this host's clock says`;
}
