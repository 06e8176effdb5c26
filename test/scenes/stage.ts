/**
 * Plays a scene in one process: an API server, by default the one in memory, the controller as it is shipped, and nodes that do what the
 * scene says. The clock moves only when the scene moves it, so a scene has the same output each time.
 */

import { writeFile } from 'node:fs/promises';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import manifest from '../../package.json' with { type: 'json' };
import { startApiServer } from '../../sandbox/api-server/api-server.ts';
import { controllerAddress } from '../../sandbox/cluster/hosts.ts';
import { installDefinitions } from '../../sandbox/cluster/objects.ts';
import { type CommandSpec, runProgram } from '../../src/cli/program.ts';
import type { Caller, KubeClient } from '../../src/kube/client.ts';
import { leaderIdentity } from '../../src/kube/election/lease-record.ts';
import type { KubeObject, Resource } from '../../src/kube/resources.ts';
import { clientOver } from '../../src/kube/transport/http-client.ts';
import { type Clock, systemClock } from '../../src/util/clock.ts';
import { messageOf, RefitError } from '../../src/util/errors.ts';
import { FakeClock, settle } from '../support/clock/fake-clock.ts';
import { T0 } from '../support/clock/times.ts';
import { COMMANDS } from '../support/commands.ts';
import { compactJson } from './compact-json.ts';
import { type LeaderJournal, newJournal } from './leader-journal.ts';
import { tableText } from './table-text.ts';

const SECOND = 1000;
const RANDOM = '0'.repeat(16);
/** Matches the identity of a leader, which ends with random digits. */
const LEADER = new RegExp(
  RegExp.escape(leaderIdentity(hostname(), RANDOM)).replace(/0{16}$/, '[0-9a-f]{16}'),
  'g',
);
/** The number of controllers whose API servers answer. */
const CONTROLLERS = 3;

/** The API server of a scene. */
export interface SceneServer {
  /** The URL for people, who need no credentials. */
  readonly url: string;
  readonly caller: Caller;
  /** The caller of the hosts and of the scene itself, if they have another one than the leaders. */
  readonly callerOfHosts?: Caller;
  /** Waits until all clients have got what others have written, and do nothing more; absent if they need no real time. */
  readonly settled?: () => Promise<void>;
  stop(): Promise<void>;
}

/** A process of the cluster, such as the controller of a dialect. */
export type Actor = (parts: ActorParts) => Promise<RunningActor>;

export interface ActorParts {
  readonly server: SceneServer;
  readonly client: KubeClient;
  readonly clock: FakeClock;
  readonly journal: LeaderJournal;
}

export interface RunningActor {
  /** Does what is due; called once in each second of the scene. */
  readonly tick?: () => Promise<void>;
  readonly stop?: () => Promise<void>;
}

interface StageParts {
  readonly clock: FakeClock;
  readonly directory: string;
  /** The commands of `refit` that people run; by default, the commands of the product. */
  readonly commands?: readonly CommandSpec[];
  /** The number of the last uid; absent if the server chooses random uids. */
  readonly uids?: { readonly last: number };
}

function uidNumber(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
}

export class Stage implements AsyncDisposable {
  readonly clock: FakeClock;
  readonly client: KubeClient;
  /** What the leaders of the scene have done. */
  readonly journal = newJournal();
  /** The clock of people: it has the time of the scene, and its timers are real. */
  readonly clockOfPeople: Clock = { ...systemClock, now: () => this.clock.now() };
  readonly #server: SceneServer;
  readonly #directory: string;
  readonly #commands: readonly CommandSpec[];
  readonly #uids: { readonly last: number } | undefined;
  readonly #actors: RunningActor[] = [];
  /** What the scene has shown, in this order. */
  readonly #shown: string[] = [];

  private constructor(server: SceneServer, parts: StageParts) {
    const { clock, directory, commands = COMMANDS, uids } = parts;
    this.#server = server;
    this.clock = clock;
    this.#directory = directory;
    this.#commands = commands;
    this.#uids = uids;
    this.client = clientOver(server.callerOfHosts ?? server.caller);
  }

  /**
   * Starts the API server with the kinds of all dialects. The caller removes `directory`. People run these commands of
   * `refit`; by default, the commands of the product.
   */
  static async open(directory: string, commands?: readonly CommandSpec[]): Promise<Stage> {
    const clock = new FakeClock(T0);
    const uids = { last: 0 };
    const server = await startApiServer({
      clock,
      addresses: Array.from({ length: CONTROLLERS }, (_, index) => controllerAddress(index + 1)),
      newUid: () => uidNumber(++uids.last),
    });
    const parts = { clock, directory, uids, ...(commands && { commands }) };
    const stage = await Stage.on(server, parts);
    await installDefinitions(stage.client, clock);
    return stage;
  }

  /** Plays on this API server, which has the kinds of all dialects. The stage stops it. */
  static async on(server: SceneServer, parts: StageParts): Promise<Stage> {
    const stage = new Stage(server, parts);
    const kubeconfig = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'scene',
      contexts: [{ name: 'scene', context: { cluster: 'scene', user: 'anna' } }],
      clusters: [{ name: 'scene', cluster: { server: server.url } }],
      users: [{ name: 'anna', user: {} }],
    };
    await writeFile(stage.kubeconfig, JSON.stringify(kubeconfig));
    return stage;
  }

  /** The uid of the object that is created next; undefined if nobody knows it. */
  get nextUid(): string | undefined {
    return this.#uids && uidNumber(this.#uids.last + 1);
  }

  /** The path of the kubeconfig of a person who may do everything. */
  get kubeconfig(): string {
    return join(this.#directory, 'kubeconfig');
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T): Promise<void> {
    const { namespace } = object.metadata;
    const options = namespace === undefined ? {} : { namespace };
    const { status } = object as KubeObject & { readonly status?: unknown };
    const created = await this.client.create(resource, object, options);
    if (status === undefined) return;
    const whole = { ...created, status } as T;
    await this.client.replace(resource, whole, { ...options, subresource: 'status' });
  }

  async start(actor: Actor): Promise<RunningActor> {
    const { client, clock, journal } = this;
    const running = await actor({ server: this.#server, client, clock, journal });
    this.#actors.push(running);
    return running;
  }

  /** Ends a process that `start` has started. */
  async end(actor: RunningActor): Promise<void> {
    this.#actors.splice(this.#actors.indexOf(actor), 1);
    if (actor.stop) await this.clock.runUntil(actor.stop());
  }

  /** Moves the time on. Each actor does in each second what is due. */
  async wait(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      for (const { tick } of this.#actors) await tick?.();
      await this.clock.advance(SECOND);
      await this.#settle();
    }
  }

  /**
   * Moves the time to a second of the scene. Loading a module takes real time, in which a waiting clock moves on, so
   * what a scene does after the start of its processes begins at a fixed second.
   */
  async waitUntil(second: number): Promise<void> {
    const left = T0 + second * SECOND - this.clock.now();
    if (left < 0) throw new Error(`second ${second} of the scene is over`);
    await this.wait(Math.floor(left / SECOND));
    await this.clock.advance(left % SECOND);
  }

  /** Waits until everything that needs no time is done. */
  async #settle(): Promise<void> {
    for (let round = 0; round < 10; round++) await settle();
    await this.#server.settled?.();
  }

  /** Runs one command of `refit`, and shows what it prints. */
  async refit(...args: readonly string[]): Promise<void> {
    this.#show(`$ refit ${args.join(' ')}`, await this.answer(...args));
  }

  /** Runs one command of `refit`, and returns what it prints. */
  async answer(...args: readonly string[]): Promise<string> {
    return await this.answerAlone(...args, '--kubeconfig', this.kubeconfig);
  }

  /** Runs one command of `refit` that prints JSON, and shows the JSON in few lines. */
  async refitJson(...args: readonly string[]): Promise<void> {
    const text = await this.#output([...args, '-o', 'json', '--kubeconfig', this.kubeconfig]);
    this.#show(`$ refit ${args.join(' ')} -o json`, compactJson(this.#comparable(text)));
  }

  /** Runs one command of `refit` that needs no cluster, and shows what it prints. */
  async refitAlone(...args: readonly string[]): Promise<void> {
    this.#show(`$ refit ${args.join(' ')}`, await this.answerAlone(...args));
  }

  /** Runs one command of `refit` that needs no cluster, and returns what it prints. */
  async answerAlone(...args: readonly string[]): Promise<string> {
    return this.#comparable(await this.#output(args));
  }

  /** Returns the path of a file of the scene. */
  path(name: string): string {
    return join(this.#directory, name);
  }

  /** Shows the objects of a kind as `kubectl get` does. */
  async get(resource: Resource, ...flags: readonly 'wide'[]): Promise<void> {
    const wide = flags.includes('wide');
    const title = `$ kubectl get ${resource.plural.toLowerCase()} -A${wide ? ' -o wide' : ''}`;
    this.#show(title, await tableText(this.#server.url, resource, wide));
  }

  /** Shows text that neither `refit` nor `kubectl` prints. */
  note(title: string, text: string): void {
    this.#show(title, text);
  }

  /** Shows JSON that neither `refit` nor `kubectl` prints, in few lines. */
  noteJson(title: string, text: string): void {
    this.#show(title, compactJson(this.#comparable(text)));
  }

  /** Returns everything that the scene has shown. */
  text(): string {
    return `${this.#comparable(this.#shown.join('\n\n'))}\n`;
  }

  /** Replaces what differs on each machine and in each run. */
  #comparable(text: string): string {
    const { port } = new URL(this.#server.url);
    const user = `${userInfo().username}@${hostname()}`;
    return (
      text
        .replaceAll(`:${port}`, ':6443')
        .replaceAll(this.#directory, 'DIR')
        .replaceAll(user, 'anna')
        .replaceAll(user.replace('@', '&#64;'), 'anna')
        // The next release must not change a recorded text. Agents of the scenes have a version of their own.
        .replaceAll(`as Refit ${manifest.version} explains`, 'as this Refit explains')
        .replaceAll(`What Refit ${manifest.version} saw`, 'What this Refit saw')
        .replaceAll(`Refit ${manifest.version} said and decided`, 'This Refit said and decided')
        .replaceAll(LEADER, 'leader')
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { stop } of this.#actors) if (stop) await this.clock.runUntil(stop());
    this.client.close?.();
    await this.#server.stop();
  }

  #show(title: string, text: string): void {
    this.#shown.push(`${title}\n${text.trimEnd()}`);
  }

  async #output(args: readonly string[]): Promise<string> {
    const lines: string[] = [];
    const write = (text: string): void => void lines.push(text);
    const output = {
      isTerminal: false,
      hasColours: false,
      size: () => ({ columns: Infinity, rows: Infinity }),
      write,
    };
    const { signal: abort } = new AbortController();
    try {
      const code = await runProgram(args, this.#commands, {
        abort,
        write,
        output,
        clock: this.clockOfPeople,
      });
      return code === 0 ? lines.join('') : `${lines.join('').trimEnd()}\n(exit code ${code})`;
    } catch (error) {
      const told = error instanceof RefitError ? error.text : messageOf(error);
      return `${lines.join('')}${told}`;
    }
  }
}
