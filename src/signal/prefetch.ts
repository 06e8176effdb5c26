/**
 * Encodes what a leader requests from the agent of a waiting node: to check its downloads, or to download a payload
 * before the node is signalled. Only agents of Refit read these requests.
 */
import { hash } from 'node:crypto';
import { defined, isRecord, parseJson } from '../util/json.ts';
import { onceForEach } from '../util/memo.ts';
import * as signals from './annotations.ts';
import {
  AGENT_POLICY_ANNOTATION,
  DOWNLOAD_CHECK_ANNOTATION,
  PREFETCH_ANNOTATION,
} from './names.ts';

/** A payload that an agent downloads before its node is signalled. */
export interface Prefetch extends DownloadRequest {
  readonly command: signals.SignalCommand;
}

interface DownloadRequest {
  /** The uid of the rollout that asks for the downloads. */
  readonly rollout: string;
  readonly policy: signals.AgentPolicy;
}

/** Payloads whose downloads an agent checks before a rollout starts. */
export interface DownloadCheck extends DownloadRequest {
  readonly commands: readonly signals.SignalCommand[];
}

/** Returns the annotation that asks the agent to download the payload of a command. */
export function encodePrefetch({ command, ...prefetch }: Prefetch): Record<string, string> {
  return { [PREFETCH_ANNOTATION]: encode({ ...prefetch, commands: [command] }) };
}

/** Returns the annotation that asks the agent to check the downloads of several commands. */
export function encodeDownloadCheck(check: DownloadCheck): Record<string, string> {
  return { [DOWNLOAD_CHECK_ANNOTATION]: encode(check) };
}

function encode({ rollout, commands, policy }: DownloadCheck): string {
  return JSON.stringify({
    rollout,
    commands: commands.map(signals.encodeCommand),
    policy: forDownloads(policy),
  });
}

/** Returns only the members of the policy that concern downloads. */
export function forDownloads(policy: signals.AgentPolicy): signals.AgentPolicy {
  const { requireHttps, diskReserveBytes, downloadTimeoutMs, spreadMs } = policy;
  return defined({ requireHttps, diskReserveBytes, downloadTimeoutMs, spreadMs });
}

/** Returns the requested download; undefined if there is none, or if it has no sha256 to verify it. */
export function decodePrefetch(annotations: signals.Annotations = {}): Prefetch | undefined {
  const asked = read(annotations).prefetch;
  const command = asked?.commands[0];
  if (command?.kind !== 'k0supdate' || command.sha256 === undefined || !asked) return undefined;
  return { rollout: asked.rollout, command, policy: asked.policy };
}

/** Returns the requested check; undefined if there is no valid request. */
export function decodeDownloadCheck(
  annotations: signals.Annotations = {},
): DownloadCheck | undefined {
  return read(annotations).check;
}

/**
 * Returns the id that the agent repeats in its answer to the check. The result is cached for each version of the
 * annotations.
 */
export const downloadCheckId = onceForEach((annotations: signals.Annotations): string =>
  hash('sha256', annotations[DOWNLOAD_CHECK_ANNOTATION] ?? '').slice(0, 16),
);

const read = onceForEach((annotations: signals.Annotations) => {
  const { [PREFETCH_ANNOTATION]: prefetch, [DOWNLOAD_CHECK_ANNOTATION]: check } = annotations;
  return { prefetch: decode(prefetch), check: decode(check) };
});

/**
 * The maximum number of commands that an agent reads from the annotation. There is a limit because others may write the
 * annotation, too.
 */
export const MOST_COMMANDS = 8;

function decode(text: string | undefined): DownloadCheck | undefined {
  const value = parseJson(text);
  if (!isRecord(value) || typeof value['rollout'] !== 'string' || !Array.isArray(value['commands']))
    return undefined;
  const commands = value['commands']
    .slice(0, MOST_COMMANDS)
    .flatMap((command) => signals.decodeCommand(command) ?? []);
  const policy = signals.decodeAgentPolicy({
    [AGENT_POLICY_ANNOTATION]: JSON.stringify(value['policy'] ?? {}),
  });
  return { rollout: value['rollout'], commands, policy };
}
