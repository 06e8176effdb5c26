/** Planted mistakes of agents and hosts: the explorer must find them. */
import { placeToFetch } from '../../src/agent/download/fetch-ahead.ts';
import { afterStep } from './host.ts';
import type { NodeRules } from './turn-trail.ts';

type AfterStep = NodeRules['afterStep'];
const OK = { ok: true } as const;

export const noTrialRun: AfterStep = (step, host, ...rest) =>
  step.kind === 'trial-run' ? { host, outcome: OK } : afterStep(step, host, ...rest);

export const previousIsNotKept: AfterStep = (step, host, ...rest) =>
  step.kind === 'keep-previous' ? { host, outcome: OK } : afterStep(step, host, ...rest);

/** Downloads the payload although the complete payload is already on the host. */
export const downloadsAnew: AfterStep = (step, host, ...rest) =>
  afterStep(step, step.kind === 'download' ? { ...host, staged: undefined } : host, ...rest);

/** Ends the service during the roll-back, although the new binary never ran. */
export const rollsBackRoughly: AfterStep = (step, before, ...rest) => {
  const { host, outcome } = afterStep(step, before, ...rest);
  const { service } = host;
  if (step.kind !== 'roll-back' || service?.life !== 'up') return { host, outcome };
  return { host: { ...host, service: { ...service, life: 'stopping' } }, outcome };
};

/** Reports that the drain is done without evicting any pod. */
export const evictsNobody: AfterStep = (step, host, ...rest) =>
  step.kind === 'cordon-and-drain' ? { host, outcome: OK } : afterStep(step, host, ...rest);

/** Works without knowing whether k0s runs its own agent. */
export const asksNobody: NodeRules['ownAgentFacts'] = () => ({});

/** Fetches ahead wherever a service runs, even if k0s's own agent carries out the signals there. */
export const fetchesBeside: NodeRules['placeToFetch'] = (facts) => placeToFetch(facts, 'replace');
