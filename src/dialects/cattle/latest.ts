/** Resolves a Plan to its latest version and hash, or to problems in the words of the original. */
import type { CattlePlan } from '../../api/cattle/plan.ts';
import { because, type Reason } from '../../engine/model/reasons.ts';
import { parseLabelSelector, SelectorError } from '../../kube/selectors.ts';
import type { Secret } from '../../kube/types.ts';
import { parseGoDuration } from '../../util/go-duration.ts';
import { type ConditionUpdate, conditionOf, says } from './conditions.ts';
import { hashedSecrets, latestHash, mungeVersion } from './latest-hash.ts';
import { selectorText } from './selector-text.ts';
import { windowsOf } from './window.ts';

export interface Latest {
  /** The recorded values if there are problems. */
  readonly version: string;
  readonly hash: string;
  readonly problems: readonly Reason[];
}

/** Without access to Secrets, the recorded hash is used. */
export type SecretLookup = (name: string) => Secret | undefined;

export function resolveLatest(plan: CattlePlan, secretOf: SecretLookup | undefined): Latest {
  const { latestVersion = '', latestHash: recordedHash = '' } = plan.status ?? {};
  const recorded = { version: latestVersion, hash: recordedHash };
  const secrets = hashedSecrets(plan).map((name) => ({ name, secret: secretOf?.(name) }));
  const absent = secretOf ? secrets.filter(({ secret }) => !secret) : [];
  const fault = faultOf(plan) ?? absent.map(({ name }) => `secrets "${name}" not found`).join(', ');
  if (fault !== '') return { ...recorded, problems: [because('InvalidPlan', fault)] };
  const version = versionOf(plan);
  if (version === undefined) return { ...recorded, problems: [because('VersionUnknown', unknownVersion(plan))] };
  if (!LABEL_VALUE.test(version)) {
    const message = `version "${version}" is not a valid label value; use at most 63 letters, digits, "-", "_" and "."`;
    return { ...recorded, problems: [because('InvalidPlan', message)] };
  }
  const found = secrets.flatMap(({ secret }) => secret ?? []);
  const hash = found.length === secrets.length ? latestHash(plan, version, found) : recordedHash;
  return { version, hash, problems: [] };
}

const LABEL_VALUE = /^(?:[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)$/;

/** The first problem, in the order of the original. */
function faultOf({ spec }: CattlePlan): string | undefined {
  if (!spec) return 'spec is missing';
  const { drain, window, postCompleteDelay, nodeSelector } = spec;
  if (drain?.deleteEmptydirData !== undefined && drain.deleteLocalData !== undefined) {
    return 'spec.drain cannot specify both deleteEmptydirData and deleteLocalData';
  }
  const selectors = { 'spec.drain.podSelector': drain?.podSelector, 'spec.nodeSelector': nodeSelector };
  for (const [field, selector] of Object.entries(selectors)) {
    try {
      parseLabelSelector(selectorText(selector ?? {}));
    } catch (error) {
      if (!(error instanceof SelectorError)) throw error;
      return `${field} is invalid, ${error.message}`;
    }
  }
  const windows = window && windowsOf(window);
  if (typeof windows === 'string') return `spec.window is invalid, ${windows}`;
  if (postCompleteDelay === undefined) return undefined;
  const delay = parseGoDuration(postCompleteDelay);
  if (delay === undefined)
    return `spec.postCompleteDelay is invalid, "${postCompleteDelay}" is not a duration; use for example 90s or 1h30m`;
  return delay < 0 ? 'spec.postCompleteDelay is negative' : undefined;
}

function versionOf(plan: CattlePlan): string | undefined {
  const { version = '', channel = '' } = plan.spec ?? {};
  if (version !== '') return mungeVersion(version);
  const { status, reason } = conditionOf(plan, 'LatestResolved') ?? {};
  const isResolved = channel !== '' && status === 'True' && reason === 'Channel';
  return isResolved ? plan.status?.latestVersion : undefined;
}

const NEITHER = 'cannot resolve plan: missing channel and version';

function unknownVersion(plan: CattlePlan): string {
  return plan.spec?.channel ? 'waiting for the version of the channel' : NEITHER;
}

/** `LatestResolved` of a channel is set by the channel controller. */
export function conditionsOf({ spec }: CattlePlan, problems: readonly Reason[]): ConditionUpdate[] {
  const invalid = problems.find(({ code }) => code === 'InvalidPlan');
  if (invalid) return [{ type: 'Validated', status: 'False', reason: 'Error', message: invalid.message }];
  const validated: ConditionUpdate = { type: 'Validated', status: 'True', reason: 'PlanIsValid', message: '' };
  const resolved = { type: 'LatestResolved', status: 'True', reason: 'Version', message: '' } as const;
  const unresolved = { ...resolved, status: 'False', reason: 'Error', message: NEITHER } as const;
  if (spec?.version) return [validated, resolved];
  return spec?.channel ? [validated] : [validated, unresolved];
}

export const NOT_READY: ConditionUpdate = {
  type: 'Complete',
  status: 'False',
  reason: 'NotReady',
  message: 'plan is not valid and resolved',
};

/** True if the status already says all of that. */
export function isRecorded(plan: CattlePlan, { version, hash, problems }: Latest): boolean {
  const { latestVersion = '', latestHash: recordedHash = '' } = plan.status ?? {};
  const wanted = [...conditionsOf(plan, problems), ...(problems.length > 0 ? [NOT_READY] : [])];
  return latestVersion === version && recordedHash === hash && wanted.every((verdict) => says(plan, verdict));
}
