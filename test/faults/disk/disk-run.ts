/**
 * Runs the work of one node whose disk fails or loses its power: the real agent and its real steps, on files in memory.
 */
import { basename, dirname } from 'node:path';
import { Agent } from '../../../src/agent/agent.ts';
import type { ActiveJournal } from '../../../src/agent/journal.ts';
import type { Maintenance } from '../../../src/agent/maintenance/node-maintenance.ts';
import { perform } from '../../../src/agent/perform-step.ts';
import { DEFAULT_PLACE } from '../../../src/agent/service/find-services.ts';
import type { ServiceFacts } from '../../../src/agent/service/host.ts';
import { syncPath } from '../../../src/agent/state/durable-files.ts';
import { loadJournal, saveJournal } from '../../../src/agent/state/journal-file.ts';
import { pathsIn, upgradePathsOf } from '../../../src/agent/state/state-directory.ts';
import type { FileTrust } from '../../../src/agent/state/trusted-path.ts';
import type { Step, StepOutcome } from '../../../src/agent/steps/step.ts';
import { decodeReport } from '../../../src/signal/annotations.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { silentLogger } from '../../../src/util/log.ts';
import { MemoryStore, viewOf } from '../../agent/memory-object.ts';
import { FakeClock } from '../../support/clock/fake-clock.ts';
import { SkewedClock } from '../../support/clock/skewed-clock.ts';
import {
  BINARY,
  bytesOf,
  type DiskWork,
  IMAGES,
  NEW,
  OLD,
  STATE,
  versionAt,
} from './disk-works.ts';
import type { PayloadServer } from './payload-server.ts';
import { failure, type Loss, SunkenFiles } from './sunken-files.ts';

const JOURNAL = pathsIn(STATE).journal;

/** The faults of a disk. A value of `Loss` is a loss of power, which also ends the process. */
export type DiskFault = 'crash' | 'ENOSPC' | 'EIO' | Loss;

/** One operation of a run in which no fault occurs. `nth` counts from 1. */
export interface FilePoint {
  readonly nth: number;
  readonly operation: string;
  /** The name of the file without its directory. */
  readonly file: string;
}

export interface DiskVerdict {
  /** The last status of the signal; `stuck` if it never ended. */
  readonly end: string;
  readonly reason: string;
  readonly violations: readonly string[];
  readonly points: readonly FilePoint[];
}

export interface DiskRunOptions {
  readonly work: DiskWork;
  /** The server of the payload, which is `bytesOf(NEW)`. */
  readonly server: PayloadServer;
  readonly fault?: { readonly nth: number; readonly kind: DiskFault } | undefined;
  /** True for a disk that reports each sync as successful, but syncs nothing. */
  readonly lies?: boolean;
}

const OVER = ['Completed', 'Failed', 'FailedDownload'];
const PATIENCE_S = 900;
const PACE_MS = 200;
/**
 * Returns a simulated check of trust. The owners of files are not simulated, but the directory of the staged binary is.
 */
function trusting({ files }: SunkenFiles): FileTrust {
  const unless = (code: string) => (error: NodeJS.ErrnoException) => {
    if (error.code !== code) throw error;
  };
  return {
    assertTrusted: async () => await Promise.resolve(),
    assertReplaceable: async () => await Promise.resolve(),
    async makePrivate(directory) {
      await files.mkdir(directory, 0o700).catch(unless('EEXIST'));
      await syncPath(dirname(directory), files);
    },
    async removeEmpty(directory) {
      await files.rm(directory, { force: true });
      await syncPath(dirname(directory), files);
    },
  };
}

const MAINTENANCE: Maintenance = {
  whoCordons: async () => await Promise.resolve('self'),
  readNode: async () => await Promise.resolve(undefined),
  hasCordon: async () => await Promise.resolve(false),
  cordonAndDrain: async () => await Promise.resolve(),
  uncordon: async () => await Promise.resolve(),
};

/** A clock with real time for downloads. Only the waits for free space during a download are shortened. */
const hurried = new SkewedClock(systemClock, { pauses: 1 / 1000 });

export async function runDisk(options: DiskRunOptions): Promise<DiskVerdict> {
  return await new DiskRun(options).play();
}

interface Service {
  readonly pid: number;
  readonly version: string;
  readonly file: object;
}

class DiskRun {
  readonly #options: DiskRunOptions;
  readonly #clock = new FakeClock();
  readonly #store = new MemoryStore();
  readonly #disk: SunkenFiles;
  readonly #points: FilePoint[] = [];
  readonly #violations = new Set<string>();
  #stop = new AbortController();
  #service: Service | undefined;
  #pids = 0;
  #atEnd: () => void = () => undefined;
  /** The current download, which takes real time. The fake clock waits until it has ended. */
  #fetching: Promise<unknown> = Promise.resolve();

  constructor(options: DiskRunOptions) {
    this.#options = options;
    this.#disk = new SunkenFiles(
      async (operation, path) => await this.#before(operation, path),
      options.lies,
    );
    this.#disk.put(BINARY, bytesOf(OLD));
    options.work.prepare(this.#disk);
  }

  async play(): Promise<DiskVerdict> {
    const { work, server } = this.#options;
    const command = work.command(server.url);
    this.#store.send({ planId: 'p', created: 'c', command });
    this.#boot();
    this.#startAgent();
    let end: string | undefined;
    for (let second = 0; second < PATIENCE_S && end === undefined; second++) {
      await this.#fetching;
      await this.#clock.advance(second < 60 ? 100 : 1_000);
      end = this.#ending();
    }
    this.#stop.abort();
    if (end !== undefined) this.#judge(end);
    this.#atEnd();
    const { reason = '' } = decodeReport(this.#store.object.metadata.annotations, 'c') ?? {};
    return { end: end ?? 'stuck', reason, violations: [...this.#violations], points: this.#points };
  }

  /** Returns the last status if the agent has also cleaned up; otherwise undefined. */
  #ending(): string | undefined {
    const status = this.#store.statuses.at(-1) ?? '';
    const journal = this.#disk.peek(JOURNAL)?.toString() ?? '';
    const isUp = this.#service !== undefined && !this.#stop.signal.aborted;
    return OVER.includes(status) && journal.includes('"idle"') && isUp ? status : undefined;
  }

  #judge(end: string): void {
    const { work } = this.#options;
    const judge = (when: string): void => {
      const wrong = [
        ...work.wrongNow(this.#disk),
        ...work.wrongAtEnd(this.#disk, end, this.#service?.version),
      ];
      for (const each of wrong) this.#violations.add(`${each}${when}`);
    };
    judge('');
    this.#judgeLeftovers();
    // The reported result must also be true after a loss of power.
    this.#disk.losePower('everything');
    judge(' once the power was gone');
  }

  #judgeLeftovers(): void {
    const { work, fault } = this.#options;
    // If a removal fails, its file stays, and the next download starts with it.
    if (fault && this.#points[fault.nth - 1]?.operation === 'rm') return;
    for (const path of work.leftovers)
      if (this.#disk.peek(path)) this.#violations.add(`${basename(path)} is left over`);
  }

  async #before(operation: string, path: string): Promise<void> {
    await this.#alive();
    for (const wrong of this.#options.work.wrongNow(this.#disk)) this.#violations.add(wrong);
    const nth = this.#points.push({
      nth: this.#points.length + 1,
      operation,
      file: basename(path),
    });
    const { fault } = this.#options;
    if (fault?.nth !== nth) return;
    if (fault.kind === 'ENOSPC' || fault.kind === 'EIO') throw failure(fault.kind, path);
    this.#die();
    if (fault.kind === 'crash') this.#expectResumption();
    else {
      this.#disk.losePower(fault.kind);
      this.#boot();
    }
    this.#clock.schedule(PACE_MS, () => this.#startAgent());
    await this.#alive();
  }

  /**
   * If only the process crashes, the next process finds all files of the crashed process. Verifies that the next
   * process downloads no byte again.
   */
  #expectResumption(): void {
    const { work, server } = this.#options;
    const held = this.#disk.peek(work.part)?.length ?? 0;
    const before = server.from.length;
    this.#atEnd = () => {
      const again = server.from.slice(before);
      if (held > 0 && again.some((from) => from < held))
        this.#violations.add(`fetched anew, and ${held} bytes were there`);
    };
  }

  /** Never resolves for a dead process, so that it does nothing more. */
  async #alive(abort = this.#stop.signal): Promise<void> {
    if (abort.aborted) await new Promise<never>(() => undefined);
  }

  #die(): void {
    this.#fetching = Promise.resolve();
    this.#stop.abort();
  }

  /** Starts the binary at the path, as the supervisor does. Tries again if the file is not a complete binary. */
  #boot(): void {
    this.#service = undefined;
    this.#clock.schedule(PACE_MS, () => {
      const version = versionAt(this.#disk.peek(BINARY));
      const file = this.#disk.identity(BINARY);
      if (version === undefined || file === undefined) {
        this.#violations.add('no bootable binary at the path');
        return this.#boot();
      }
      if (version === NEW && this.#options.work.isDead) return this.#boot();
      this.#service = { pid: ++this.#pids, version, file };
    });
  }

  #startAgent(): void {
    const stop = new AbortController();
    this.#stop = stop;
    const tools = { clock: this.#clock, random: () => 0.5, log: silentLogger };
    const agent = new Agent({
      ...tools,
      object: viewOf(this.#store),
      maintenance: MAINTENANCE,
      loadJournal: async () => await loadJournal(JOURNAL, this.#disk.files),
      saveJournal: async (journal) => await saveJournal(JOURNAL, journal, this.#disk.files),
      observe: async () => await Promise.resolve(this.#facts()),
      perform: async (step, journal, abort) => await this.#perform(step, journal, abort),
      times: { restartTimeoutMs: 5_000, soakMs: 500, readyTimeoutMs: 5_000 },
      accepts: ['k0supdate', 'airgapupdate'],
      searchService: () => undefined,
      ageOf: async () => await Promise.resolve(0),
    });
    // Starts the agent again, as its supervisor does.
    void agent
      .run(stop.signal)
      .catch(() => this.#clock.schedule(PACE_MS, () => this.#startAgent()));
  }

  #facts(): ServiceFacts {
    if (!this.#service) return { binary: BINARY };
    const { pid, version, file } = this.#service;
    const process = { pid, started: 'boot', parent: 1 };
    const running = { version, process, current: file === this.#disk.identity(BINARY) };
    return { running, service: process, binary: BINARY };
  }

  /** Performs the real steps, except the trial run, because there is no file that could be executed. */
  async #perform(step: Step, journal: ActiveJournal, abort: AbortSignal): Promise<StepOutcome> {
    await this.#alive();
    if (step.kind === 'trial-run') {
      const isWhole = versionAt(this.#disk.peek(upgradePathsOf(BINARY).staged)) === NEW;
      return isWhole ? { ok: true } : { ok: false, reason: 'the trial run failed' };
    }
    const isFetch = step.kind === 'download' || step.kind === 'fetch-bundle';
    const tools = {
      stateDirectory: STATE,
      imagesDirectory: IMAGES,
      places: { current: DEFAULT_PLACE },
      userAgent: 'refit-agent/0 (disk)',
      limits: { maxBytes: 10_000_000, reserveBytes: 1_000_000, totalMs: 6e8, stallMs: 6e7 },
      environment: {},
      maintenance: MAINTENANCE,
      restarter: { restart: async () => await Promise.resolve(this.#boot()) },
      files: this.#disk.files,
      fileTrust: trusting(this.#disk),
      copyAttributes: async (from: string, to: string) => await this.#disk.copyAttributes(from, to),
      clock: isFetch ? hurried : this.#clock,
      random: () => 0.5,
      log: silentLogger,
    };
    const done = perform(step, journal, tools, abort);
    if (isFetch) this.#fetching = Promise.race([done, this.#death()]).catch(() => undefined);
    return await done;
  }

  async #death(): Promise<void> {
    const { signal: abort } = this.#stop;
    await new Promise<void>((resolve) =>
      abort.addEventListener('abort', () => resolve(), { once: true }),
    );
  }
}
