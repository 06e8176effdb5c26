/** Gives access to Vitest's own runner. The test in serve-orders.ts needs this runner to start other tests. */
import { TestRunner } from 'vitest';

export default class OuterRunner extends TestRunner {
  constructor(config: ConstructorParameters<typeof TestRunner>[0]) {
    super(config);
    (globalThis as { mutateRunner?: unknown }).mutateRunner = this;
  }
}
