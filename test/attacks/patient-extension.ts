/**
 * Runs the server of the hooks with the limits of `refit capi-extension`, but without its time limits, so that it ends
 * no connection on a busy machine.
 */
import { join } from 'node:path';
import { keepHeapSmall } from '../../src/composition/small-heap.ts';
import { DEFAULT_LIMITS } from '../../src/dialects/capi/hooks/connection-limits.ts';
import { startExtensionServer } from '../../src/dialects/capi/hooks/extension-server.ts';
import { hookService, type ServiceParts } from '../../src/dialects/capi/hooks/hook-service.ts';
import { stderrLogger } from '../../src/util/log.ts';

const [address = '', certificates = ''] = process.argv.slice(2);
const PATIENCE_MS = 3_600_000;
const log = stderrLogger('info');

/** The tests call only discovery, which uses none of these parts. */
const NOTHING = { log } as unknown as ServiceParts;

keepHeapSmall();
await startExtensionServer({
  address,
  files: {
    certificate: join(certificates, 'tls.crt'),
    key: join(certificates, 'tls.key'),
    clientAuthority: join(certificates, 'ca.crt'),
  },
  callTimeoutMs: PATIENCE_MS,
  answer: hookService(NOTHING),
  log,
  limits: { ...DEFAULT_LIMITS, patienceMs: PATIENCE_MS },
});
