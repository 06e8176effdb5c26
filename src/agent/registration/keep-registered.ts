/**
 * Keeps a controller registered: collects its facts from the flags, the service and the host, and writes its
 * ControlNode if that differs.
 */
import { networkInterfaces } from 'node:os';
import type { ControlNode } from '../../signal/names.ts';
import { messageOf } from '../../util/errors.ts';
import { defined } from '../../util/json.ts';
import type { Tools } from '../../util/tools.ts';
import type { OwnObject } from '../object/own-object.ts';
import { keepDoing } from '../object/signal-object.ts';
import type { AgentOptions } from '../options.ts';
import type { PlaceParts, ServicePlaces } from '../service/service-place.ts';
import type { ServiceStatus } from '../service/status-socket.ts';
import * as controlNode from './control-node.ts';
import { kubeletName } from './host-name.ts';

export interface RegistrationParts extends Tools {
  /** The ControlNode. Another part of the agent watches it. It stays unknown until the API server serves its kind. */
  readonly object: OwnObject;
  readonly describe: () => Promise<controlNode.ControllerFacts | undefined>;
}

/**
 * The milliseconds between two checks. The agent polls, because nothing signals that the service answers or that
 * another version was started.
 */
const UNKNOWN_POLL_MS = 1_000;
const KNOWN_POLL_MS = 60_000;

/** Works until `stop` aborts. Never rejects, because an agent can work with an outdated ControlNode. */
export async function keepRegistered(parts: RegistrationParts, stop: AbortSignal): Promise<void> {
  const tell = (error: unknown, pauseMs: number): void =>
    parts.log.warn('the registration is retried', { reason: messageOf(error), pauseMs });
  await keepDoing(
    async () => await updateRegistration(parts),
    tell,
    { base: 50, cap: 10_000 },
    parts,
    stop,
  );
}

/**
 * Updates the ControlNode with at most one write. Returns the milliseconds until the next check; undefined if the next
 * check is needed only after a change of the object.
 */
async function updateRegistration({
  object,
  describe,
  log,
}: RegistrationParts): Promise<number | undefined> {
  if (!object.isKnown) return undefined;
  const facts = await describe();
  if (facts === undefined) return UNKNOWN_POLL_MS;
  const newest: ControlNode | undefined = object.newest;
  const missing = controlNode.missingFields(newest, facts);
  if (missing !== undefined) {
    await object.claim(missing);
    log.info(newest === undefined ? 'registered' : 'registration updated', { mode: facts.mode });
    return 0;
  }
  const changed = newest && controlNode.withTrueStatus(newest, facts);
  if (changed === undefined) return KNOWN_POLL_MS;
  await object.writeStatus(changed);
  log.info('status updated', { ...changed.status });
  return 0;
}

export interface DescriptionParts extends Pick<PlaceParts, 'askStatus' | 'log'> {
  readonly name: string;
  readonly options: Pick<AgentOptions, 'controller'>;
  readonly places: Pick<ServicePlaces, 'current'>;
  readonly object: { readonly newest: ControlNode | undefined };
}

/** Maps the architectures that Go names differently from Node.js. */
const GO_ARCH: Readonly<Record<string, string>> = {
  x64: 'amd64',
  ia32: '386',
  ppc64: 'ppc64le',
  loong64: 'loong64',
};

/**
 * Returns undefined while the mode of the controller is unknown, which means that no flag sets it and the service does
 * not report it.
 */
export async function describeController(
  parts: DescriptionParts,
): Promise<controlNode.ControllerFacts | undefined> {
  const { name, options, places, log } = parts;
  const flags = options.controller;
  const status = await parts.askStatus(places.current.statusSocket).catch((error: unknown) => {
    log.debug('cannot read the status of the service for the registration', {
      reason: messageOf(error),
    });
    return undefined;
  });
  const mode = flags.mode ?? modeOf(status);
  if (mode === undefined) return undefined;
  const address = flags.apiAddress ?? addressOf(status, parts);
  const arch = GO_ARCH[process.arch] ?? process.arch;
  const nodeName = mode === 'controller' ? name : kubeletName(places.current);
  return defined({
    name,
    nodeName,
    mode,
    os: process.platform,
    arch,
    address,
    version: status?.version,
  });
}

function modeOf(status: ServiceStatus | undefined): controlNode.ControllerMode | undefined {
  if (status?.workloads === undefined) return undefined;
  return status.workloads ? 'controller+worker' : 'controller';
}

function addressOf(
  status: ServiceStatus | undefined,
  { object }: DescriptionParts,
): string | undefined {
  const configured = status?.apiAddress;
  if (configured !== undefined && controlNode.isAddress(configured)) return configured;
  if (object.newest?.status?.addresses?.some(({ type }) => type === 'InternalIP')) return undefined;
  // The original agent uses the same address if the configuration names no address.
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
}
