/** Implements `refit ready`, which says before an upgrade what would break. It writes nothing. */

import { homeOf } from '../../composition/own-namespaces.ts';
import { readPolicy } from '../../engine/policy/read-policy.ts';
import { readingAsker } from '../../health/ask-check.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type ClusterConfig } from '../../kube/config/cluster-config.ts';
import { loadChosenCluster } from '../../kube/config/kubeconfig.ts';
import { endpointSlices, nodes } from '../../kube/resources.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { serverAskerOf } from '../../kube/transport/readyz.ts';
import { type Asking, answer, askingOf, type ReadResult, unknown } from '../../ready/asking.ts';
import type { AskedServer, PolicyCheck, ReadyContext } from '../../ready/context.ts';
import { type Accepted, CHECK_NAMES, type CheckName, countOf } from '../../ready/finding.ts';
import { askReadiness } from '../../ready/readiness.ts';
import { EXIT, messageOf, RefitError } from '../../util/errors.ts';
import { parseVersion } from '../../util/version.ts';
import type { DialectModule } from '../contract/dialect-module.ts';
import type { CommandParts } from '../contract/object-commands.ts';
import type { ConnectionFlags } from '../options.ts';
import { loadPolicies } from '../status/load.ts';
import { renderReady } from './render.ts';

export interface ReadyFlags extends ConnectionFlags {
  readonly to: string;
  readonly accept?: readonly string[];
  readonly strict?: boolean;
  readonly output: 'text' | 'json';
}

export interface ReadyParts extends CommandParts {
  readonly modules: readonly Pick<DialectModule<string>, 'readiness'>[];
}

const SERVER_TIMEOUT_MS = 10_000;
/** The metrics of an API server with many kinds have several MiB. */
const MOST_SERVER_BYTES = 64 * 1024 * 1024;

/** Prints what was found. Resolves with 1 if there is a blocker, or with `--strict` if something is unknown. */
export async function showReadiness(flags: ReadyFlags, parts: ReadyParts): Promise<number> {
  const to = readTarget(flags.to);
  const accepted = readAccepted(flags.accept ?? []);
  const { abort, clock, output, modules } = parts;
  const config = await loadChosenCluster(flags);
  using client = createClient(config, { userAgent: 'refit-ready' });
  const asking = askingOf(client, abort);
  const policies = await loadPolicies({ client, abort });
  const { unseen } = policies;
  const policyChecks = policies
    .list()
    .flatMap((policy) =>
      (readPolicy(policy).health?.checks ?? []).map(
        (check): PolicyCheck => ({ policy: policy.metadata.name, check }),
      ),
    );
  const report = await askReadiness(
    {
      ...asking,
      to,
      now: clock.now(),
      dialects: await Promise.all(modules.map(async (each) => await each.readiness())),
      askServers: serversOf(config, asking, flags, abort),
      policyChecks: unseen === undefined ? answer(policyChecks) : unknown(unseen),
      askCheck: checkAskerFor(config, client, parts, asking),
      abortIfAsked: () => abort.throwIfAborted(),
    },
    accepted,
  );
  output.write(
    flags.output === 'json'
      ? `${JSON.stringify(report, undefined, 2)}\n`
      : renderReady(report, output),
  );
  const isBlocked = countOf(report, 'blocker') > 0;
  const isUnknown = flags.strict === true && countOf(report, 'unknown') > 0;
  return isBlocked || isUnknown ? EXIT.failed : EXIT.ok;
}

/** Returns the version with its `v`. A minor version such as `1.37` stands for its first release. */
function readTarget(text: string): string {
  const version = `v${text.replace(/^v/, '')}`;
  const whole = /^v\d+\.\d+$/.test(version) ? `${version}.0` : version;
  if (parseVersion(whole) !== undefined) return whole;
  throw new RefitError(
    'REFIT_USAGE',
    `--to must be a version such as v1.37 or v1.37.2+k0s.0, found "${text}"`,
  );
}

function readAccepted(texts: readonly string[]): Accepted {
  return new Map(
    texts.map((text) => {
      const [, name = '', reason = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
      const check = CHECK_NAMES.find((each) => each === name);
      if (check !== undefined && reason.trim() !== '') return [check, reason.trim()] as const;
      throw new RefitError(
        'REFIT_USAGE',
        `--accept must be CHECK=REASON with one of the checks ${CHECK_NAMES.join(', ')}, and a reason, found "${text}"`,
      );
    }),
  ) satisfies ReadonlyMap<CheckName, string>;
}

/** Returns a function that requests a path of each API server that the Service of the API servers names. */
function serversOf(
  config: ClusterConfig,
  { list, text }: Asking,
  { apiPort }: ConnectionFlags,
  abort: AbortSignal,
): (path: string) => Promise<readonly AskedServer[]> {
  const ask = serverAskerOf(config);
  const own = new URL(config.server).host;
  return async (path) => {
    const found = await serverAddresses(list);
    if (found.length <= 1) {
      const asked = await text(path);
      const reply: ReadResult<string> =
        asked.kind === 'answer' && asked.value === undefined
          ? unknown(`${path} is not there`)
          : (asked as ReadResult<string>);
      return [{ server: own, answer: reply }];
    }
    return await Promise.all(
      found.map(async ({ address, port }) => {
        const options = {
          path,
          port: apiPort ?? port,
          deadlineMs: SERVER_TIMEOUT_MS,
          mostBytes: MOST_SERVER_BYTES,
          abort,
        };
        return {
          server: address,
          answer: await replyOf(async () => await ask(address, options), abort),
        };
      }),
    );
  };
}

async function replyOf(
  ask: () => Promise<{ readonly status: number; readonly body: string }>,
  abort: AbortSignal,
): Promise<ReadResult<string>> {
  try {
    const { status, body } = await ask();
    if (status === 200) return answer(body);
    return unknown(status === 403 ? 'you may not read this path' : `it answered ${status}`);
  } catch (error) {
    abort.throwIfAborted();
    return unknown(messageOf(error));
  }
}

/** Resolves with the addresses of the API servers, which they write into the EndpointSlices of their Service. */
async function serverAddresses(list: Asking['list']) {
  const slices = await list(endpointSlices);
  if (slices.kind === 'unknown') return [];
  return slices.value
    .filter(
      ({ metadata: { namespace, labels = {} } }) =>
        namespace === 'default' && labels['kubernetes.io/service-name'] === 'kubernetes',
    )
    .flatMap(({ endpoints = [], ports = [] }) =>
      (endpoints ?? []).flatMap(({ addresses }) =>
        addresses.map((address) => ({ address, port: ports[0]?.port })),
      ),
    );
}

/** Returns a function that makes one health check for all nodes. */
function checkAskerFor(
  config: ClusterConfig,
  client: KubeClient,
  { clock, abort }: CommandParts,
  { list }: Asking,
): ReadyContext['askCheck'] {
  const ask = readingAsker({ client, clock, namespace: homeOf(config), environment: process.env });
  return async (check) => {
    const asked = await list(nodes);
    const all = asked.kind === 'answer' ? asked.value : [];
    return await ask(check, new Set(all.map(({ metadata }) => metadata.name)), abort);
  };
}
