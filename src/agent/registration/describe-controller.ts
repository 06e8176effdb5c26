/** Describes the controller on this host, from flags, service and host. */
import { networkInterfaces } from 'node:os';
import type { ControlNode } from '../../signal/names.ts';
import { messageOf } from '../../util/errors.ts';
import { defined } from '../../util/json.ts';
import type { Logger } from '../../util/log.ts';
import type { AgentOptions } from '../options.ts';
import type { ServicePlaces } from '../service/service-place.ts';
import type { ServiceStatus } from '../service/status-socket.ts';
import { type ControllerFacts, type ControllerMode, isAddress } from './control-node.ts';
import { kubeletName } from './host-name.ts';

export interface DescriptionParts {
  readonly name: string;
  readonly options: Pick<AgentOptions, 'controller'>;
  readonly places: Pick<ServicePlaces, 'current'>;
  readonly object: { readonly newest: ControlNode | undefined };
  readonly askStatus: (statusSocket: string) => Promise<ServiceStatus>;
  readonly log: Logger;
}

/** Node.js architectures with another name in Go. */
const GO_ARCH: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', ppc64: 'ppc64le', loong64: 'loong64' };

/** Undefined while neither a flag nor the service says the mode. */
export async function describeController(parts: DescriptionParts): Promise<ControllerFacts | undefined> {
  const { name, options, places, log } = parts;
  const flags = options.controller;
  const status = await parts.askStatus(places.current.statusSocket).catch((error: unknown) => {
    log.debug('no status for the registration', { reason: messageOf(error) });
    return undefined;
  });
  const { workloads } = status ?? {};
  const own = workloads === undefined ? undefined : workloads ? 'controller+worker' : 'controller';
  const mode: ControllerMode | undefined = flags.mode ?? own;
  if (mode === undefined) return undefined;
  const address = flags.apiAddress ?? addressOf(status, parts);
  const arch = GO_ARCH[process.arch] ?? process.arch;
  const nodeName = mode === 'controller' ? name : kubeletName(places.current);
  return defined({ name, nodeName, mode, os: process.platform, arch, address, version: status?.version });
}

function addressOf(status: ServiceStatus | undefined, { object }: DescriptionParts): string | undefined {
  const configured = status?.apiAddress;
  if (configured !== undefined && isAddress(configured)) return configured;
  if (object.newest?.status?.addresses?.some(({ type }) => type === 'InternalIP')) return undefined;
  // The original's guess when its configuration names none.
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
}
