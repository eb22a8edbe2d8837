<?php

/** Laravel's tables, made by the migrations of 8.83 itself or after those of 13. */

declare(strict_types=1);

use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;
use Illuminate\Support\Str;

const STUBS = ['jobs' => 'Queue', 'failed_jobs' => 'Queue', 'cache' => 'Cache'];

function create_tables(string $shape): void
{
    match ($shape) {
        '8' => array_map('run_stub', STUBS, array_keys(STUBS)),
        '13' => create_tables_of_13(),
        'batches' => run_stub('Queue', 'batches', 'job_batches'),
    };
}

/** As `artisan queue:table`, `queue:failed-table` and `cache:table` fill in the stub and `migrate` runs it. */
function run_stub(string $package, string $stub, ?string $table = null): void
{
    $table ??= $stub;
    $name = Str::studly($table);
    $stub = file_get_contents("Illuminate/$package/Console/stubs/$stub.stub", true);
    eval(substr(str_replace(['{{table}}', '{{tableClassName}}'], [$table, $name], $stub), strlen('<?php')));
    (new ("Create{$name}Table"))->up();
}

function create_tables_of_13(): void
{
    Schema::create('jobs', function (Blueprint $table) {
        $table->id();
        $table->string('queue')->index();
        $table->longText('payload');
        $table->unsignedSmallInteger('attempts');
        $table->unsignedInteger('reserved_at')->nullable();
        $table->unsignedInteger('available_at');
        $table->unsignedInteger('created_at');
    });
    Schema::create('failed_jobs', function (Blueprint $table) {
        $table->id();
        $table->string('uuid')->unique();
        $table->string('connection');
        $table->string('queue');
        $table->longText('payload');
        $table->longText('exception');
        $table->timestamp('failed_at')->useCurrent();
        $table->index(['connection', 'queue', 'failed_at']);
    });
    Schema::create('cache', function (Blueprint $table) {
        $table->string('key')->primary();
        $table->mediumText('value');
        $table->bigInteger('expiration')->index();
    });
}
